// Times steps of llm.c's train_gpt2 on random tokens: llm_c CHECKPOINT BATCH_SIZE STEPS prints the seconds of
// each as JSON. Compiled with -I to the folder of llm.c; its own main is left out.
#define TESTING
#include "train_gpt2.c"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  GPT2 model;
  gpt2_build_from_checkpoint(&model, arguments[1]);
  const int batch_size = atoi(arguments[2]), steps = atoi(arguments[3]), length = model.config.max_seq_len;
  int* ids = mallocCheck((batch_size * length + 1) * sizeof(int));
  for (int i = 0; i <= batch_size * length; ++i) ids[i] = rand() % 400;
  for (int step = 0; step < steps; ++step) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    gpt2_forward(&model, ids, ids + 1, batch_size, length);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.0f, step + 1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s%f", step == 0 ? "[" : ", ", end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec));
  }
  printf("]\n");
  free(ids);
  gpt2_free(&model);
  return 0;
}
