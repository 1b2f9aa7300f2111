/* Calls ${name} and checks what it writes.
 *
 *   cc -O2 ${name}_example.c ${name}.c -I/usr/local/cuda/include -lcuda -ldl -lpthread -o ${name}_example
 *   ./${name}_example${usage}
 */
#include "${name}.h"

#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DO(call)                                                       \
  do {                                                                 \
    int status = (int)(call);                                          \
    if (status) {                                                      \
      fprintf(stderr, "%s: error %d %s\n", #call, status, ${name}_error()); \
      return 1;                                                        \
    }                                                                  \
  } while (0)

/* ${operand} and f32, for numbers that are neither tiny nor huge. */
static uint16_t narrow(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  ${narrow}
}

static float wide(uint16_t number) {
  uint32_t bits = ${wide};
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* Operands: quarters from -1 to 1, whose products and sums are exact. */
static uint16_t operand(void) {
  return narrow((float)(rand() % 9 - 4) / 4);
}

int main(int count, char **words) {
  long M = ${M}, N = ${N}, K = ${K};
  (void)count, (void)words;
  size_t a_bytes = (size_t)M * K * 2, b_bytes = (size_t)N * K * 2, d_bytes = (size_t)M * N * sizeof(${d_type});
  uint16_t *a = malloc(a_bytes), *b = malloc(b_bytes);
  ${d_type} *d = malloc(d_bytes);
  if (!a || !b || !d) return 1;
  for (long i = 0; i < M * K; i++) a[i] = operand();
  for (long i = 0; i < N * K; i++) b[i] = operand();

  CUdevice device;
  CUcontext context;
  CUdeviceptr A, B, D;
  DO(cuInit(0));
  DO(cuDeviceGet(&device, 0));
  DO(cuDevicePrimaryCtxRetain(&context, device));
  DO(cuCtxSetCurrent(context));
  DO(cuMemAlloc(&A, a_bytes));
  DO(cuMemAlloc(&B, b_bytes));
  DO(cuMemAlloc(&D, d_bytes));
  DO(cuMemcpyHtoD(A, a, a_bytes));
  DO(cuMemcpyHtoD(B, b, b_bytes));
  DO(cuMemsetD8(D, 0xff, d_bytes)); /* NaN: what is not written shows */

  DO(${name}((void *)A, (void *)B, (void *)D${sizes}, NULL));
  DO(cuStreamSynchronize(NULL));
  DO(cuMemcpyDtoH(d, D, d_bytes));
  long step = M * N * (double)K > 1e9 ? (long)(M * N * (double)K / 1e9) * 2 + 1 : 1, wrong = 0, checked = 0;
  for (long i = 0; i < M * N; i += step, checked++) {
    float sum = 0, got = ${read_d};
    for (long k = 0; k < K; k++) sum += wide(a[i / N * K + k]) * wide(b[i % N * K + k]);
    if (!(fabsf(got - sum) <= 0.008f * fabsf(sum) + 1e-6f) && wrong++ < 5)
      printf("D[%ld, %ld] is %g, and must be %g\n", i / N, i % N, got, sum);
  }

  enum { CALLS = 200 };
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < CALLS; i++) DO(${name}((void *)A, (void *)B, (void *)D${sizes}, NULL));
  clock_gettime(CLOCK_MONOTONIC, &end);
  DO(cuStreamSynchronize(NULL));
  double us = ((end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) / 1e3) / CALLS;
  printf("${name} %ld x %ld x %ld: %ld of %ld elements wrong; %.2f us of the host a call\n", M, N, K, wrong, checked, us);
  return wrong != 0;
}
