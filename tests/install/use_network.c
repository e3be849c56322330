/* A program that uses a compiled network: serially, on threads of its own, and beside what dlc itself computes.
 *
 *   use_network inputs x.npy                 writes the input
 *   use_network run y.npy [net.weights]      runs, and compares with dlc's output, bit for bit */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

#ifndef INPUTS
#define INPUTS 784
#define OUTPUTS 10
#define SHAPE "1, 1, 28, 28"
#endif

static float x[INPUTS], serial[OUTPUTS], parallel[OUTPUTS], expected[OUTPUTS];

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

/* Version 1.0 of the format: a header of 128 bytes, then the elements. */
static int write_npy(const char* path) {
  char header[129] = "\x93NUMPY\x01";
  header[8] = 118;
  const int n = 10 + snprintf(header + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", SHAPE);
  FILE* f = fopen(path, "wb");
  if (f == NULL) return fail("cannot write the input");
  memset(header + n, ' ', (size_t)(128 - n));
  header[127] = '\n';
  fwrite(header, 1, 128, f);
  fwrite(x, sizeof(float), INPUTS, f);
  return fclose(f) == 0 ? 0 : fail("cannot write the input");
}

/* Threads would do the same: ranges in any order, here the last one first. */
static int parts = 0, calls = 0;
static void backwards(void* pool, int64_t count, void (*body)(void* context, int64_t begin, int64_t end), void* context) {
  int64_t end = count;
  if (pool != &parts) return;
  ++calls;
  while (end > 0) {
    const int64_t begin = end > 3 ? end - 3 : 0;
    body(context, begin, end);
    ++parts;
    end = begin;
  }
}

int main(int argc, char** argv) {
  int i;
  const void* inputs[] = {x};
  void* outputs[] = {serial};
  void *weights = NULL, *workspace;
  FILE* f;
  for (i = 0; i < INPUTS; ++i) x[i] = (float)(i * 37 % 101) / 101.0f;
  if (argc < 3) return fail("use_network inputs|run FILE [WEIGHTS]");
  if (strcmp(argv[1], "inputs") == 0) return write_npy(argv[2]);

  f = fopen(argv[2], "rb");
  if (f == NULL || fseek(f, -(long)sizeof expected, SEEK_END) != 0 || fread(expected, sizeof expected, 1, f) != 1)
    return fail("cannot read dlc's output");
  fclose(f);
#ifdef NET_WEIGHTS_FILE
  if (argc < 4) return fail("the weights are missing");
  f = fopen(argv[3], "rb");
  weights = aligned_alloc(64, NET_WEIGHTS_BYTES);
  if (f == NULL || fread(weights, 1, NET_WEIGHTS_BYTES, f) != NET_WEIGHTS_BYTES || fgetc(f) != EOF)
    return fail("the weights have another size");
  fclose(f);
#endif
  workspace = aligned_alloc(64, net_workspace_bytes(NULL) / 64 * 64 + 64);
#ifdef NET_WEIGHTS_FILE
  if (net_run(inputs, outputs, workspace, NULL, NULL) != -1) return fail("no weights were taken");
  ((char*)weights)[8] ^= 1;
  if (net_run(inputs, outputs, workspace, NULL, weights) != -1) return fail("weights of another model were taken");
  ((char*)weights)[8] ^= 1;
#endif
  if (net_run(inputs, outputs, workspace, NULL, weights) != 0) return fail("net_run failed");
  outputs[0] = parallel;
  if (net_run_parallel(inputs, outputs, workspace, NULL, weights, backwards, &parts) != 0)
    return fail("net_run_parallel failed");
  if (calls < 1 || parts <= calls) return fail("nothing ran in parts");
  if (memcmp(serial, parallel, sizeof serial) != 0) return fail("parts compute something else");
  if (memcmp(serial, expected, sizeof serial) != 0) return fail("dlc run computes something else");
  free(workspace);
  free(weights);
  printf("equal\n");
  return 0;
}
