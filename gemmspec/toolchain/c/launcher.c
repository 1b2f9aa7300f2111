/* ${summary}
 *
 * Made by gemmspec ${version} for ${target}: the machine code and how to launch it. Needs libc, and libcuda.so.1 when it is
 * called. To build a library: cc -std=gnu11 -O2 -shared -fPIC -fvisibility=hidden ${name}.c -o ${name}.so -ldl -lpthread
 */
#include "${name}.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this file needs of cuda.h, so that it does not need cuda.h. */
typedef struct {
  _Alignas(128) uint64_t opaque[16]; /* 64 in the headers of CUDA 12 */
} TensorMap;
typedef struct {
  int id;
  char pad[4];
  union {
    char pad[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int allowed;
  } value;
} Attribute;
typedef struct {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void *stream;
  Attribute *attributes;
  unsigned count;
} Config;
_Static_assert(sizeof(TensorMap) == 128 && _Alignof(TensorMap) == 128, "CUtensorMap");
_Static_assert(sizeof(Attribute) == 72 && offsetof(Attribute, value) == 8, "CUlaunchAttribute");
_Static_assert(sizeof(Config) == 56 && offsetof(Config, stream) == 32, "CUlaunchConfig");
enum {
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_CONTEXT = 201,
  NO_LIBRARY = 303,
  NOT_FOUND = 500,
  MAX_DYNAMIC_SHARED_BYTES = 8,
  CLUSTER_DIMENSION = 4,
  PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CAPTURE_RELAXED = 2
};

static struct {
  int (*cuCtxGetCurrent)(void **context);
  int (*cuCtxGetId)(void *context, unsigned long long *id);
  int (*cuFuncSetAttribute)(void *function, int attribute, int value);
  int (*cuGetErrorString)(int error, const char **text);
  int (*cuLaunchKernelEx)(const Config *config, void *function, void **arguments, void **extra);
  int (*cuModuleGetFunction)(void **function, void *module, const char *name);
  int (*cuModuleLoadData)(void **module, const void *image);
  int (*cuTensorMapEncodeTiled)(TensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill);
  int (*cuThreadExchangeStreamCaptureMode)(int *mode);
} driver;

/* A context that has loaded the kernel. Ids are never reused, as addresses are. */
typedef struct Loaded {
  unsigned long long context;
  void *function;
  struct Loaded *next;
} Loaded;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Loaded *loaded; /* guarded by lock */
static int no_driver;
static __thread char message[256];

static const unsigned char image[] __attribute__((aligned(64))) = {
${image}
};

__attribute__((visibility("default"))) const char *${name}_error(void) {
  return message;
}

static int failed(const char *call, int error) {
  const char *text = NULL;
  if (driver.cuGetErrorString) driver.cuGetErrorString(error, &text);
  snprintf(message, sizeof message, "%s: error %d (%s)", call, error, text ? text : "unknown");
  return error;
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    no_driver = NO_LIBRARY;
    return;
  }
#define FIND(call) \
  if (!(*(void **)&driver.call = dlsym(library, #call))) no_driver = NOT_FOUND
  FIND(cuCtxGetCurrent);
  FIND(cuCtxGetId);
  FIND(cuFuncSetAttribute);
  FIND(cuGetErrorString);
  FIND(cuLaunchKernelEx);
  FIND(cuModuleGetFunction);
  FIND(cuModuleLoadData);
  FIND(cuTensorMapEncodeTiled);
  FIND(cuThreadExchangeStreamCaptureMode);
#undef FIND
}

static int load(void **function) {
  void *module;
  int mode = CAPTURE_RELAXED, error; /* a graph may be being captured, and the load is no part of it */
  if ((error = driver.cuThreadExchangeStreamCaptureMode(&mode))) return failed("cuThreadExchangeStreamCaptureMode", error);
  if ((error = driver.cuModuleLoadData(&module, image)))
    failed("cuModuleLoadData", error);
  else if ((error = driver.cuModuleGetFunction(function, module, "${kernel}")))
    failed("cuModuleGetFunction", error);
  else if ((error = driver.cuFuncSetAttribute(*function, MAX_DYNAMIC_SHARED_BYTES, ${shared_bytes})))
    failed("cuFuncSetAttribute", error);
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  return error;
}

/* The kernel in the current context, loaded there by the first call. */
static int find(void **function) {
  void *context = NULL;
  unsigned long long id;
  int error;
  pthread_once(&opened, open_driver);
  if (no_driver) {
    snprintf(message, sizeof message, "%s", no_driver == NO_LIBRARY ? "there is no libcuda.so.1" : "libcuda.so.1 is older than CUDA 12");
    return no_driver;
  }
  if ((error = driver.cuCtxGetCurrent(&context))) return failed("cuCtxGetCurrent", error);
  if (!context) {
    snprintf(message, sizeof message, "no CUDA context is current in this thread (cudaSetDevice makes one so)");
    return INVALID_CONTEXT;
  }
  if ((error = driver.cuCtxGetId(context, &id))) return failed("cuCtxGetId", error);
  pthread_mutex_lock(&lock);
  Loaded *entry = loaded;
  while (entry && entry->context != id) entry = entry->next;
  if (!entry && !(error = load(function))) {
    entry = malloc(sizeof *entry);
    if (entry) {
      *entry = (Loaded){id, *function, loaded};
      loaded = entry;
    } else {
      error = OUT_OF_MEMORY;
      snprintf(message, sizeof message, "out of memory");
    }
  }
  if (entry) *function = entry->function;
  pthread_mutex_unlock(&lock);
  return error;
}

${helpers}static int aligned(const char *name, const void *pointer) {
  if (!((uintptr_t)pointer % 16) && pointer) return 0;
  snprintf(message, sizeof message, "%s is at %p, which is no multiple of 16", name, pointer);
  return INVALID_VALUE;
}

static int encode(TensorMap *map, const char *name, int type, uint32_t rank, const void *address, const uint64_t *dims,
                  const uint64_t *strides, const uint32_t *box, const uint32_t *steps, const int *modes) {
  int error;
  for (uint32_t i = 0; i + 1 < rank; i++)
    if (strides[i] % 16) {
      snprintf(message, sizeof message, "a row of %s is %llu bytes, which is no multiple of 16", name, (unsigned long long)strides[i]);
      return INVALID_VALUE;
    }
  error = driver.cuTensorMapEncodeTiled(map, type, rank, (void *)address, dims, strides, box, steps, modes[0], modes[1],
                                        modes[2], modes[3]);
  return error ? failed("cuTensorMapEncodeTiled", error) : 0;
}

__attribute__((visibility("default"))) int ${name}(${parameters}, void *stream) {
  void *function;
  int error;
${check_sizes}  if ((error = aligned("A", A)) || (error = aligned("B", B)) || (error = aligned("D", D))) return error;
  if ((error = find(&function))) return error;
${arguments}
  void *arguments[] = {${places}};
  Attribute attributes[] = {${attributes}};
  Config config = {${grid}, ${block}, ${shared_bytes}, stream, attributes, sizeof attributes / sizeof *attributes};
  error = driver.cuLaunchKernelEx(&config, function, arguments, NULL);
  return error ? failed("cuLaunchKernelEx", error) : 0;
}
