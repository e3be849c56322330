/* A program that uses a compiled model. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

int main(void) {
  const float x[6] = {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f};
  float y[6];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  void* workspace = aligned_alloc(64, model_workspace_bytes(NULL) / 64 * 64 + 64);
  if (model_run(inputs, outputs, workspace, NULL, NULL) != 0) return 1;
  for (int i = 0; i < 6; ++i) printf("%g%c", y[i], i < 5 ? ' ' : '\n');
  free(workspace);
  return 0;
}
