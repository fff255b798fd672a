/* Many ops under way in an event loop: one descriptor, a callback for each result.
 *
 *   cc event_loop.c $(pkg-config --cflags --libs egret) && EGRET_CONFIG=client.yaml ./a.out */
#include <egret.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define KEYS 1000

struct progress {
  size_t stored, found, failed;
};

static void on_result(void* user, egret_result* result) {
  struct progress* progress = user;
  if (result->code == EGRET_STORED) ++progress->stored;
  else if (result->code == EGRET_HIT) ++progress->found;
  else ++progress->failed;
} /* the value is released after the call */

/* Submits from `next` on; returns the number of the first that was not taken. */
static size_t submit(egret_client* client, size_t next) {
  while (next < 2 * KEYS) {
    char key[32];
    egret_op op;
    memset(&op, 0, sizeof op);
    op.size = sizeof op;
    op.code = next < KEYS ? EGRET_SET : EGRET_GET; /* ops on one key keep their order */
    op.key = key;
    op.key_length = (size_t)sprintf(key, "key%zu", next % KEYS);
    op.value = "value";
    op.value_length = 5;
    op.tag = next;
    if (egret_submit(client, &op, 1) != 1) break; /* EGRET_E_AGAIN: later */
    ++next;
  }
  return next;
}

int main(void) {
  egret_pool* pool;
  egret_client* client;
  struct progress progress = {0, 0, 0};
  size_t next = 0;

  if (egret_pool_open(NULL, &pool) != EGRET_OK || egret_client_new(pool, &client) != EGRET_OK) return 1;
  egret_on_result(client, on_result, &progress);
  while (next < 2 * KEYS || egret_pending(client) > 0) {
    struct pollfd ready;
    next = submit(client, next);
    egret_flush(client);
    ready.fd = egret_fd(client);
    ready.events = POLLIN;
    if (egret_arm(client) == 0) poll(&ready, 1, 1000); /* with the loop's other descriptors */
    if (egret_progress(client) < 0) return 1;
  }
  printf("%zu stored, %zu found, %zu failed\n", progress.stored, progress.found, progress.failed);
  egret_client_free(client);
  egret_pool_close(pool);
  return progress.failed == 0 ? 0 : 1;
}
