/* A libcuda.so.1 for machines without a GPU: the few driver calls that a launch makes, on host memory.
 *
 * Every call that matters is written to the file that STUB_LOG names, one line each. A tensor map holds what it was
 * encoded from, so a launch can do the product that the real kernel would: D = A @ B^T of the first three maps.
 * STUB_FAIL=cuModuleLoadData:209 makes a call fail; STUB_CAPABILITY=90 is what the one device says of itself;
 * STUB_NO_CONTEXT=1 starts without a current context. STUB_RECORDS names a file: what a launch leaves in the kernel's
 * global array. STUB_CAPTURING=1 says of every stream that it is being captured.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int

typedef struct {
  int type;
  uint32_t rank;
  void *address;
  uint64_t dims[5], strides[5];
  uint32_t box[5];
} Map; /* 128 bytes at most */
_Static_assert(sizeof(Map) <= 128, "a tensor map is 128 bytes");

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct { int id; char pad[4]; uint32_t value[16]; } *attrs;
  unsigned count;
} Config;

static __thread void *current = NULL;
static __thread int started = 0;
static char primary[2];

static void note(const char *form, ...) {
  const char *path = getenv("STUB_LOG");
  if (!path) return;
  FILE *file = fopen(path, "a");
  va_list list;
  va_start(list, form);
  vfprintf(file, form, list);
  va_end(list);
  fputc('\n', file);
  fclose(file);
}

static int fails(const char *call) {
  const char *asked = getenv("STUB_FAIL");
  size_t length = strlen(call);
  return asked && !strncmp(asked, call, length) && asked[length] == ':' ? atoi(asked + length + 1) : 0;
}

static void start(void) {
  if (!started && !getenv("STUB_NO_CONTEXT")) current = &primary[0];
  started = 1;
}

API cuInit(unsigned flags) { (void)flags; return fails("cuInit"); }
API cuDriverGetVersion(int *version) { *version = 13000; return 0; }
API cuDeviceGetCount(int *count) { *count = 2; return 0; }
API cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < 2 ? 0 : 101; }
API cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, length, "Stub GPU"); return 0; }
API cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = getenv("STUB_CAPABILITY") ? atoi(getenv("STUB_CAPABILITY")) : 90;
  (void)device;
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 97 ? 232448 : 132;
  return 0;
}
API cuDevicePrimaryCtxRetain(void **context, int device) { *context = &primary[device]; return 0; }
API cuCtxGetCurrent(void **context) { start(); *context = current; return 0; }
API cuCtxSetCurrent(void *context) { start(); current = context; return 0; }
API cuCtxPushCurrent_v2(void *context) { start(); note("push %d", (int)((char *)context - primary)); current = context; return 0; }
API cuCtxPopCurrent_v2(void **context) { note("pop"); *context = current; current = &primary[0]; return 0; }
API cuCtxGetDevice(int *device) { *device = (int)((char *)current - primary); return current ? 0 : 201; }
API cuCtxGetId(void *context, unsigned long long *id) { *id = (char *)context - primary + 1; return context ? 0 : 201; }
API cuThreadExchangeStreamCaptureMode(int *mode) { note("capture mode %d", *mode); *mode = 0; return 0; }
API cuPointerGetAttribute(void *value, int attribute, uint64_t pointer) {
  (void)attribute; (void)pointer;
  *(int *)value = 0;
  return fails("cuPointerGetAttribute");
}

API cuModuleLoadData(void **module, const void *image) {
  note("load %.4s", (const char *)image + 1);
  *module = &primary[0];
  return fails("cuModuleLoadData");
}
API cuModuleGetFunction(void **function, void *module, const char *name) {
  note("function %s", name);
  *function = module;
  return fails("cuModuleGetFunction");
}
API cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function;
  note("attribute %d = %d", attribute, value);
  return fails("cuFuncSetAttribute");
}

static unsigned char *records;
static size_t records_size;

/* Put the file's bytes into the array; the first call makes it, so that it is as long as the file. */
static void fill_records(int launched) {
  FILE *file = getenv("STUB_RECORDS") ? fopen(getenv("STUB_RECORDS"), "rb") : NULL;
  if (!file) return;
  if (!records) {
    fseek(file, 0, SEEK_END);
    records_size = (size_t)ftell(file);
    records = calloc(records_size, 1);
    rewind(file);
  }
  if (launched && fread(records, 1, records_size, file) != records_size) abort();
  fclose(file);
}

API cuModuleGetGlobal_v2(uint64_t *pointer, size_t *bytes, void *module, const char *name) {
  (void)module;
  note("global %s", name);
  fill_records(0);
  *pointer = (uintptr_t)records, *bytes = records_size;
  return records ? fails("cuModuleGetGlobal") : 500;
}

API cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  Map map = {type, rank, address, {0}, {0}, {0}};
  if ((uintptr_t)out % 128) return 1;
  start();
  if (!current) return 201;
  note("map type %d rank %u dims %llu %llu strides %llu box %u %u steps %u %u %d %d %d %d", type, rank,
       (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)strides[0], box[0], box[1], steps[0],
       steps[1], interleave, swizzle, promotion, fill);
  memcpy(map.dims, dims, rank * sizeof *dims);
  memcpy(map.strides, strides, (rank - 1) * sizeof *strides);
  memcpy(map.box, box, rank * sizeof *box);
  memcpy(out, &map, sizeof map);
  return fails("cuTensorMapEncodeTiled");
}

/* Element `i` of a row, as its map's type has it: f16, bf16 or f32. */
static float get(const Map *map, uint64_t row, uint64_t i) {
  const char *at = (const char *)map->address + row * map->strides[0];
  float value;
  if (map->type == 6) return ((const _Float16 *)at)[i];
  if (map->type == 7) return ((const float *)at)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void set(const Map *map, uint64_t row, uint64_t i, float value) {
  char *at = (char *)map->address + row * map->strides[0];
  uint32_t bits;
  if (map->type == 6) ((_Float16 *)at)[i] = (_Float16)value;
  if (map->type == 7) ((float *)at)[i] = value;
  memcpy(&bits, &value, sizeof bits);
  if (map->type == 9) ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

API cuLaunchKernelEx(const Config *config, void *function, void **arguments, void **extra) {
  const Map *a = arguments[0], *b = arguments[1], *d = arguments[2];
  uint64_t m = d->dims[1], n = d->dims[0], k = a->dims[0];
  (void)function; (void)extra;
  note("launch grid %u %u %u block %u %u %u shared %u stream %llu attributes %u", config->grid[0], config->grid[1],
       config->grid[2], config->block[0], config->block[1], config->block[2], config->shared,
       (unsigned long long)(uintptr_t)config->stream, config->count);
  for (unsigned i = 0; i < config->count; i++)
    note("launch attribute %d = %u %u %u", config->attrs[i].id, config->attrs[i].value[0], config->attrs[i].value[1],
         config->attrs[i].value[2]);
  if (fails("cuLaunchKernelEx")) return fails("cuLaunchKernelEx");
  fill_records(1);
  if (getenv("STUB_IDLE")) return 0;
  for (uint64_t i = 0; i < m; i++)
    for (uint64_t j = 0; j < n; j++) {
      float sum = 0;
      for (uint64_t l = 0; l < k; l++) sum += get(a, i, l) * get(b, j, l);
      set(d, i, j, sum);
    }
  return 0;
}

API cuMemAlloc_v2(uint64_t *pointer, size_t bytes) { *pointer = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256); return 0; }
API cuMemFree_v2(uint64_t pointer) { free((void *)(uintptr_t)pointer); return 0; }
API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { memcpy((void *)(uintptr_t)to, from, bytes); return 0; }
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { memcpy(to, (void *)(uintptr_t)from, bytes); return 0; }
API cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t count) { memset((void *)(uintptr_t)to, byte, count); return 0; }
API cuMemsetD8Async(uint64_t to, unsigned char byte, size_t count, void *stream) {
  (void)stream;
  note("clear %zu", count);
  return cuMemsetD8_v2(to, byte, count);
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  (void)stream;
  return cuMemcpyDtoH_v2(to, from, bytes);
}
API cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = getenv("STUB_CAPTURING") != NULL; return 0; }
API cuStreamSynchronize(void *stream) { note("wait for stream %llu", (unsigned long long)(uintptr_t)stream); return 0; }
API cuCtxSynchronize(void) { return 0; }
API cuGetErrorString(int error, const char **text) {
  *text = error == 209 ? "no kernel image is available for execution on the device" : "a failure of the stub";
  return 0;
}
API cuGetErrorName(int error, const char **text) { *text = error == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "CUDA_ERROR_STUB"; return 0; }

API cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found) {
  char versioned[128];
  (void)version; (void)flags;
  snprintf(versioned, sizeof versioned, "%s_v2", name);
  void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(self, versioned);
  if (!*function) *function = dlsym(self, name);
  if (found) *found = *function ? 0 : 1;
  return *function ? 0 : 500;
}
