/* libegret: a client of Egret that reaches its backends' slots itself, without a socket on the way of a request.
 *
 *   options ─▶ pool (configuration; any thread) ─▶ client (sessions, ops under way; one thread)
 *                                                    one call, one answer:  egret_get, egret_set, egret_mget, …
 *                                                    many under way:        egret_submit … egret_flush … egret_reap, egret_wait
 *                                                    event loops:           egret_fd, egret_arm, egret_progress
 *
 * Threads: a pool is for any thread. A client belongs to the thread that made it, or that last called egret_client_adopt();
 * every call of another thread is refused with EGRET_E_THREAD. libegret starts no thread and installs no signal handler.
 * Order: ops on one key of one client are executed in the order in which they were submitted; ops on different keys are not
 * ordered. Nothing is ever sent twice: EGRET_E_UNAVAILABLE says that an op was not sent, and may be repeated;
 * EGRET_E_UNKNOWN says that it was sent and no answer came: it was executed once or not at all.
 * Fork: a child's clients of before the fork are refused with EGRET_E_FORKED, and the parent's go on. A pool goes on in
 * both, but for backends straight over rdma: a child of a process that has used these cannot, and holds nothing of RDMA
 * devices, be it the program's own. See egret_client_mine().
 * Structs begin with their size, which the caller sets: sizeof(egret_op), sizeof(egret_result). Of an array that of the
 * first element counts, for all of them.
 * Strings that are returned belong to libegret. Keys are 1 to 250 bytes, any bytes. Times are as in memcached: seconds from
 * now up to 30 days, else Unix seconds; 0: never; negative: at once. All functions: man 3 egret. */
#ifndef EGRET_H
#define EGRET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(EGRET_BUILDS_LIBRARY)
#define EGRET_API __attribute__((visibility("default")))
#else
#define EGRET_API
#endif

#define EGRET_VERSION_MAJOR 0
#define EGRET_VERSION_MINOR 2

typedef struct egret_options egret_options;
typedef struct egret_pool egret_pool;
typedef struct egret_client egret_client;

/* What came of an op (>= 0), or why nothing did (< 0). */
enum {
  EGRET_OK = 0,   /* flush, ping, or a call that has no other outcome */
  EGRET_HIT = 1,  /* get, touch: found */
  EGRET_MISS = 2, /* get, touch, delete, arithmetic, set with EGRET_F_COMPARE_CAS: no such item */
  EGRET_STORED = 3,
  EGRET_NOT_STORED = 4, /* add, replace, append, prepend: the condition did not hold */
  EGRET_EXISTS = 5,     /* the CAS did not match */
  EGRET_DELETED = 6,
  EGRET_NUMBER = 7, /* arithmetic: the new number */
  EGRET_NON_NUMERIC = 8,
  EGRET_TOO_LARGE = 9, /* larger than the backend's item_size_max; as in memcached, a set has removed the old item */
  EGRET_OUT_OF_MEMORY = 10, /* of the backend; likewise */

  EGRET_E_ARGUMENT = -1,    /* the caller is wrong: see egret_why() */
  EGRET_E_MEMORY = -2,      /* of this process, or a limit of its options */
  EGRET_E_AGAIN = -3,       /* not now: no slot is free, sessions are being made, or a get of the same key is
                               unanswered and this op would change it; wait, then call again */
  EGRET_E_UNAVAILABLE = -4, /* not sent, so not done */
  EGRET_E_UNKNOWN = -5,     /* sent, no answer: done once or not at all */
  EGRET_E_DENIED = -6,      /* the backend does not allow it to this client */
  EGRET_E_UNSUPPORTED = -7, /* the backend does not know it */
  EGRET_E_FORKED = -8,      /* the client is the parent process's */
  EGRET_E_THREAD = -9,      /* the client is another thread's, or in the middle of a call */
  EGRET_E_BROKEN = -10      /* libegret failed inside; free this client and make another */
};

/* egret_op.code */
enum { EGRET_GET = 1, EGRET_SET = 2, EGRET_DELETE = 3, EGRET_ARITH = 4, EGRET_PING = 13 };
/* egret_op.mode, of EGRET_SET */
enum { EGRET_MODE_SET = 0, EGRET_MODE_ADD = 1, EGRET_MODE_REPLACE = 2, EGRET_MODE_APPEND = 3, EGRET_MODE_PREPEND = 4 };

/* egret_op.flags. In brackets: the flag of the meta command. Two of them share a bit where no op can have both. */
enum {
  EGRET_F_COMPARE_CAS =
      1 << 0,                 /* [C] set, delete, arithmetic: only if the item's CAS is `cas`; get: no value if it is */
  EGRET_F_TOUCH = 1 << 1,     /* [T] get, arithmetic, delete with INVALIDATE: the exptime becomes `exptime` */
  EGRET_F_NO_VALUE = 1 << 2,  /* get without [v] */
  EGRET_F_WANT_CAS = 1 << 3,  /* [c] the result's `cas` */
  EGRET_F_DECREMENT = 1 << 4, /* [M] arithmetic: subtract, not below 0 */
  EGRET_F_TOUCH_FIRST = 1 << 4,  /* [T before R] get with TOUCH and RECACHE: compare with the new time to live */
  EGRET_F_CREATE = 1 << 5,       /* [N J] arithmetic: a missing item gets `initial` and `vivify_exptime` */
  EGRET_F_EXPLICIT_CAS = 1 << 7, /* [E] the item's CAS becomes `new_cas` */
  EGRET_F_VIVIFY =
      1
      << 8, /* [N] get, append, prepend: a missing item is made, empty, with `vivify_exptime`, and its maker has won */
  EGRET_F_RECACHE = 1 << 9,     /* [R] get: the first reader with less than `recache_below` seconds left wins */
  EGRET_F_INVALIDATE = 1 << 10, /* [I] delete: mark as stale; set with COMPARE_CAS: store as stale with an older CAS */
  EGRET_F_DROP_VALUE = 1 << 11, /* [x] delete: only the value, its flags and exptime */
  EGRET_F_WANT_META =
      1 << 12, /* [h l t] get, arithmetic: `marks`, `last_access`, `ttl` as before; [s] set, delete: `number` */
  EGRET_F_PEEK = 1 << 13,       /* [me] get: leaves no trace */
  EGRET_F_NEW_TTL = 1 << 14,    /* [T before t] with WANT_META: `ttl` as afterwards */
  EGRET_F_NO_BUMP = 1 << 15,    /* [k without bump, u] get: not an access */
  EGRET_F_AS_CLASSIC = 1 << 15, /* set with WANT_META: if refused, keep the old item where a classic command keeps it */
  EGRET_F_STAYS = 1 << 16       /* set: `value` stays valid until the result has come, so it need not be copied */
};

/* egret_result.marks */
enum {
  EGRET_MARK_FETCHED = 1,    /* [h] was read before */
  EGRET_MARK_STALE = 2,      /* [X] was invalidated */
  EGRET_MARK_WON = 4,        /* [W] this reader should store it anew */
  EGRET_MARK_TOKEN_SENT = 8, /* [Z] another reader was told so */
  EGRET_MARK_CREATED = 16    /* this op made the item */
};

typedef struct egret_op {
  uint32_t size;  /* sizeof(egret_op) */
  uint32_t flags; /* EGRET_F_ */
  uint8_t code;   /* EGRET_GET, … */
  uint8_t mode;   /* EGRET_MODE_ */
  uint16_t reserved;
  uint32_t client_flags;
  const char* key; /* copied by the call */
  size_t key_length;
  const void* value; /* copied by the call, unless EGRET_F_STAYS */
  size_t value_length;
  int64_t exptime;
  int64_t vivify_exptime;
  int64_t recache_below;
  uint64_t cas;
  uint64_t new_cas;
  uint64_t delta;
  uint64_t initial;
  uint64_t tag; /* the caller's; comes back in the result */
} egret_op;

/* The bytes at `value` are the library's, a copy that nobody else writes, and valid until egret_release(). Only a result
 * with a `view` needs that. */
typedef struct egret_result {
  uint32_t size; /* sizeof(egret_result) */
  int32_t code;  /* EGRET_HIT, …, EGRET_E_… */
  uint32_t client_flags;
  uint32_t last_access; /* seconds ago */
  uint8_t marks;        /* EGRET_MARK_; of a get: with WANT_META or RECACHE */
  uint8_t reserved[7];
  const void* value;
  size_t value_length;
  uint64_t cas;
  /* Arithmetic: the new number. Get with NO_VALUE: the value's length. With WANT_META: set: the value's length now; delete:
   * the length it had. */
  uint64_t number;
  uint64_t tag;
  int64_t ttl; /* seconds; -1: for ever */
  void* view;
} egret_result;

/* "0.2.0" of the library that runs. */
EGRET_API const char* egret_version(void);
/* A code in words. Static. */
EGRET_API const char* egret_text(int code);

/* --- set-up. Options are NAME and VALUE, as in docs/client/options.md; EGRET_E_ARGUMENT: egret_options_error() says what is
 * wrong. A file has a line "NAME: VALUE" for each. */
EGRET_API egret_options* egret_options_new(void); /* NULL: no memory */
/* A later value takes the place of an earlier one. */
EGRET_API int egret_options_set(egret_options* options, const char* name, const char* value);
/* All lines of the file; the first that is wrong ends it. */
EGRET_API int egret_options_load(egret_options* options, const char* file);
/* What the last call that failed found wrong; "" if none did. Valid until the next call with these options. */
EGRET_API const char* egret_options_error(const egret_options* options);
/* Pools that were opened with them go on. NULL is allowed. */
EGRET_API void egret_options_free(egret_options* options);

/* `options` is copied. NULL: the file that $EGRET_CONFIG names, else /etc/egret/client.yaml, else none are given: then the
 * proxy at tcp:127.0.0.1:11211 tells who the backends are. Connects to nothing.
 * EGRET_E_ARGUMENT: egret_options_error(options) says why; without options, a line to egret_log()'s callback. */
EGRET_API int egret_pool_open(egret_options* options, egret_pool** pool);
/* Clients that are not freed go on. */
EGRET_API void egret_pool_close(egret_pool* pool);
/* Which backend a key belongs to, by its number in the option `backends`, from 0; or among those that the proxy has told one of
 * the pool's clients last, in its order: EGRET_E_UNAVAILABLE before that. */
EGRET_API int egret_pool_server_of(const egret_pool* pool, const char* key, size_t key_length);

/* A client of the calling thread. Connects to nothing: the first op does. */
EGRET_API int egret_client_new(egret_pool* pool, egret_client** client);
/* This thread's own, made on the first call, and anew after a fork; it is freed with the thread. NULL: no memory. */
EGRET_API egret_client* egret_client_mine(egret_pool* pool);
/* Waits until there is a session with every backend; timeout_ns < 0: as long as it takes. EGRET_E_UNAVAILABLE: the time is
 * over. Not needed: ops make sessions. */
EGRET_API int egret_client_connect(egret_client* client, int64_t timeout_ns);
/* The client is this thread's from now on. No other thread may be in a call of it. */
EGRET_API int egret_client_adopt(egret_client* client);
/* Results that are not released stay valid. NULL is allowed. */
EGRET_API void egret_client_free(egret_client* client);

/* --- one call, one answer. Each returns a code. An op waits for its answer for op_timeout at most, and before that for room to be
 * sent for as long at most. Of a call of several ops, when one has waited for room in vain, all others wait together for as long once
 * more: while a backend stands still such a call ends within three times op_timeout. `result` may be NULL.
 * A thread is not cancelled (pthread_cancel) within a call. */
EGRET_API int egret_get(egret_client* client, const char* key, size_t key_length, egret_result* result);
/* Copies at most `room` bytes; `length` (may be NULL) is the value's. */
EGRET_API int egret_get_into(egret_client* client, const char* key, size_t key_length, void* to, size_t room,
                             size_t* length);
/* Get and touch. */
EGRET_API int egret_gat(egret_client* client, const char* key, size_t key_length, int64_t exptime,
                        egret_result* result);
/* Stores it, whatever is there. EGRET_STORED. */
EGRET_API int egret_set(egret_client* client, const char* key, size_t key_length, const void* value,
                        size_t value_length, int64_t exptime, uint32_t client_flags);
/* As `mode` says; cas is compared if it is not 0. The result has the item's new CAS. */
EGRET_API int egret_store(egret_client* client, int mode, const char* key, size_t key_length, const void* value,
                          size_t value_length, int64_t exptime, uint32_t client_flags, uint64_t cas,
                          egret_result* result);
/* If `cas` is not 0, only if the item's is the same. EGRET_DELETED. */
EGRET_API int egret_delete(egret_client* client, const char* key, size_t key_length, uint64_t cas);
/* EGRET_NUMBER: `now` (may be NULL) is the new number. */
EGRET_API int egret_incr(egret_client* client, const char* key, size_t key_length, uint64_t by, uint64_t* now);
/* Likewise, but down, to 0 at least. */
EGRET_API int egret_decr(egret_client* client, const char* key, size_t key_length, uint64_t by, uint64_t* now);
/* Gives the item another expiry time. */
EGRET_API int egret_touch(egret_client* client, const char* key, size_t key_length, int64_t exptime);
/* results[i] answers keys[i]. Returns how many were hits; the first error only if there was nothing but errors. */
EGRET_API int egret_mget(egret_client* client, const char* const* keys, const size_t* key_lengths, size_t count,
                         egret_result* results);
/* results[i] answers ops[i] (their tags included). EGRET_OK: each has a code >= 0; else the first code that is < 0. */
EGRET_API int egret_execute(egret_client* client, const egret_op* ops, size_t count, egret_result* results);
/* Hides all items of all backends that are stored before `delay` seconds are over. After what was submitted before. */
EGRET_API int egret_flush_all(egret_client* client, int64_t delay);

/* --- many under way */
/* Returns how many were taken, from the first on: their results come by egret_reap, egret_wait or the callback. They are sent
 * with egret_flush(), egret_wait() or egret_progress() at the latest; if nothing is under way, of 24 to 128 ops the first ones
 * at once, where their backend is reached straight on this host. EGRET_E_AGAIN: none now; EGRET_E_ARGUMENT: the first one is
 * wrong. Of an op that cannot be sent at all the result says so. */
EGRET_API int egret_submit(egret_client* client, const egret_op* ops, size_t count);
/* Sends what was submitted, and does not wait for answers. */
EGRET_API int egret_flush(egret_client* client);
/* Never waits. Returns how many results it wrote. It also sends what was submitted, and makes sessions: beside egret_submit() a
 * program needs no other call, if it makes this one every 20 ms while ops are under way. */
EGRET_API int egret_reap(egret_client* client, egret_result* results, size_t room);
/* Waits for `at_least` results, or for as many as are under way if they are fewer; or, if nothing is, until sessions are
 * made. timeout_ns < 0: as long as it takes, which op_timeout bounds. */
EGRET_API int egret_wait(egret_client* client, egret_result* results, size_t room, size_t at_least, int64_t timeout_ns);
/* The result of a submitted op with this tag is dropped. Returns how many there were. */
EGRET_API int egret_forget(egret_client* client, uint64_t tag);
/* Ops submitted whose results were not handed out. */
EGRET_API size_t egret_pending(const egret_client* client);
/* The bytes of a result may go; view becomes NULL. By the client's thread, or when that client is freed. */
EGRET_API int egret_release(egret_result* result);

/* --- event loops: egret_fd() is readable when egret_progress() has something to do. Before sleeping: egret_arm(); it
 * returns how many results are there, and only after 0 the descriptor wakes for each further one. Where nothing is under way
 * by then (egret_pending() is 0) nothing will wake it. The number is the client's own until the program closes that
 * descriptor: then egret_fd() has another one. */
EGRET_API int egret_fd(egret_client* client);
/* See egret_fd(). */
EGRET_API int egret_arm(egret_client* client);
/* Does what is due, and calls back for each result. Returns how many results are there for egret_reap(). */
EGRET_API int egret_progress(egret_client* client);
/* From now on results of submitted ops go to `call`, from within egret_progress() and egret_wait(); they are released
 * after the call, unless view was set to NULL (then the callee releases a copy of the struct). It may call egret functions
 * of this client but those that free it. NULL: back to egret_reap(). */
EGRET_API int egret_on_result(egret_client* client, void (*call)(void* user, egret_result* result), void* user);

/* --- telling */
/* The last error of the client in words; "" if there was none. Valid until its next call. */
EGRET_API const char* egret_why(const egret_client* client);
/* Writes at most `room` names and values, and returns how many there are. names and values may be NULL. */
EGRET_API int egret_counters(const egret_client* client, const char** names, uint64_t* values, size_t room);
/* Lines of the log of this process go there: level 0 debug, 1 info, 2 warning, 3 error. Called at the end of calls, by
 * their thread. NULL: nowhere, as at the start. */
EGRET_API void egret_log(void (*call)(void* user, int level, const char* line), void* user);

#ifdef __cplusplus
}
#endif

#endif
