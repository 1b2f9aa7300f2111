/* ${summary}
 *
 * Made by gemmspec ${version} for ${target}. Matrices are row-major without gaps, on the GPU, at multiples of 16 bytes:
 * ${shapes}.
 */
#ifndef GEMMSPEC_${name}_H
#define GEMMSPEC_${name}_H

#ifdef __cplusplus
extern "C" {
#endif

/* Launch D = A @ B^T on a stream (a CUstream or cudaStream_t; NULL is the default one) of the current context.
 * Return 0, or the driver's error number, and then ${name}_error() says more. Threads may call at the same time. */
int ${name}(${parameters}, void *stream);

/* What the last call of ${name} in this thread failed of. */
const char *${name}_error(void);

#ifdef __cplusplus
}
#endif

#endif
