/* The first program: one call, one answer.
 *
 *   cc first.c $(pkg-config --cflags --libs egret) && EGRET_CONFIG=client.yaml ./a.out
 *
 * client.yaml: backends: [shm:/run/egret/backend.sock] */
#include <egret.h>
#include <stdio.h>
#include <string.h>

static void tell(void* user, int level, const char* line) {
  (void)user;
  if (level >= 2) fprintf(stderr, "%s\n", line);
}

int main(void) {
  egret_pool* pool;
  egret_client* client;
  egret_result result;
  uint64_t now = 0;
  int code;

  egret_log(tell, NULL);
  if (egret_pool_open(NULL, &pool) != EGRET_OK) return 1; /* the log says why */
  if (egret_client_new(pool, &client) != EGRET_OK) return 1;

  code = egret_set(client, "greeting", 8, "hello", 5, 0, 0);
  if (code == EGRET_E_UNAVAILABLE) {
    fprintf(stderr, "not done: %s\n", egret_why(client)); /* may be repeated */
    return 1;
  }
  printf("set: %s\n", egret_text(code));

  memset(&result, 0, sizeof result);
  result.size = sizeof result;
  code = egret_get(client, "greeting", 8, &result);
  if (code == EGRET_HIT) printf("get: %.*s\n", (int)result.value_length, (const char*)result.value);
  egret_release(&result); /* the value's bytes may go */

  egret_set(client, "visits", 6, "41", 2, 60, 0); /* for a minute */
  egret_incr(client, "visits", 6, 1, &now);
  printf("incr: %llu\n", (unsigned long long)now);

  egret_client_free(client);
  egret_pool_close(pool);
  return 0;
}
