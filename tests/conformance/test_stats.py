"""stats, stats settings, stats reset: memcached's names, and counters that count what memcached counts."""

from dialog import Case, compare, converse
from servers import ORACLE_IS_OLD, SUT, Egret, Memcached, ask, stats_of

# Names that say something about memcached's own machinery, which Egret has not: they may be left out.
NOT_OURS = {"the background threads of its LRU": ["lru_*", "moves_*", "direct_reclaims", "evicted_active"], "gone": ["slab_reassign_evictions_nomem"]}
SETTINGS_NOT_OURS = {
    "slabs": ["slab_*", "growth_factor", "chunk_size", "tail_repair_time"],
    "the LRU": ["lru_*", "hot_*", "warm_*", "temp_lru", "temporary_ttl", "track_sizes"],
    "its hash table": ["hash*"],
    "external storage": ["ext_*", "memory_file"],
    "TLS, which this build of it lacks too": ["ssl_*"],
    "UDP and the thread dispatch": ["udpport", "num_threads_per_udp", "num_napi_ids", "reqs_per_event"],
    "its logger and buffers": ["watcher_logbuf_size", "worker_logbuf_size", "read_buf_mem_limit", "inline_ascii_response"],
}


def ours(names, exceptions):
    patterns = [pattern for group in exceptions.values() for pattern in group]

    def excepted(name):
        return any(name == p or (p.endswith("*") and name.startswith(p[:-1])) for p in patterns)

    return {name for name in names if not excepted(name)}


def test_names_in_stats(oracle, subject):
    missing = ours(stats_of(oracle.address), NOT_OURS) - set(stats_of(subject.address))
    assert not missing, f"stats lacks: {' '.join(sorted(missing))}"


def test_names_in_stats_settings(oracle, subject):
    missing = ours(stats_of(oracle.address, b"settings"), SETTINGS_NOT_OURS) - set(stats_of(subject.address, b"settings"))
    assert not missing, f"stats settings lacks: {' '.join(sorted(missing))}"


def names_of(server):
    answer = ask(server.address, b"stats\r\n", end=b"END\r\n").decode()
    return [line.split(" ")[1] for line in answer.split("\r\n") if line.startswith("STAT ") and not line.startswith("STAT egret_")]


# What memcached 1.6.45 says, in its order, where no thread looks after its LRUs (-o no_lru_crawler,no_lru_maintainer): 84 rows.
ROWS = """pid uptime time version libevent pointer_size rusage_user rusage_system max_connections curr_connections total_connections
rejected_connections connection_structures response_obj_oom response_obj_count response_obj_bytes read_buf_count read_buf_bytes
read_buf_bytes_free read_buf_oom reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired get_flushed
delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses store_too_large
store_no_memory auth_cmds auth_errors bytes_read bytes_written limit_maxbytes accepting_conns listen_disabled_num time_in_listen_disabled_us
threads conn_yields hash_power_level hash_bytes hash_is_expanding slab_reassign_rescues slab_reassign_chunk_rescues
slab_reassign_inline_reclaim slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_busy_nomem slab_reassign_last_busy_status
slab_reassign_running slabs_moved malloc_fails log_worker_dropped log_worker_written log_watcher_skipped log_watcher_sent log_watchers
unexpected_napi_ids round_robin_fallback bytes curr_items total_items slab_global_page_pool expired_unfetched evicted_unfetched evictions
reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked""".split()


def test_rows_are_those_of_the_newer_memcached():
    """With the options that it has by default, of which maxconns_fast is one."""
    servers_ = [Egret(proxy={"maxconns_fast": "on"})] if SUT == "egret" else []
    if not ORACLE_IS_OLD:
        servers_.append(Memcached("-o", "no_lru_crawler"))
    try:
        for server in servers_:
            assert names_of(server) == ROWS and len(ROWS) == 84
    finally:
        for server in servers_:
            server.stop()


def test_every_line_has_the_shape_of_a_statistic(subject):
    for text in (b"stats\r\n", b"stats settings\r\n"):
        answer = ask(subject.address, text, end=b"END\r\n")
        lines = answer.split(b"\r\n")
        assert lines[-2:] == [b"END", b""]
        for line in lines[:-2]:
            assert line.startswith(b"STAT ") and len(line.split(b" ", 2)) == 3, line


def test_stats_reset_and_what_is_wrong(oracle, subject):
    cases = [Case(text) for text in (b"stats reset\r\n", b"stats reset x\r\n", b"stats bogus\r\n", b"stats reset noreply\r\n", b"stats RESET\r\n",
                                     b"stats detail\r\n", b"stats detail x\r\n", b"stats cachedump\r\n", b"stats cachedump x\r\n", b"statsx\r\n",
                                     b"set <k> 0 0 1\r\na\r\nstats reset\r\nget <k>\r\n")]
    compare(oracle, subject, cases)


COUNTED = ["cmd_get", "cmd_set", "cmd_flush", "cmd_touch", "cmd_meta", "get_hits", "get_misses", "get_expired", "get_flushed", "delete_misses",
           "delete_hits", "incr_misses", "incr_hits", "decr_misses", "decr_hits", "cas_misses", "cas_hits", "cas_badval", "touch_hits",
           "touch_misses", "store_too_large", "store_no_memory", "auth_cmds", "auth_errors", "curr_items", "total_items", "evictions"]
COUNTED_TEXT = (
    b"".join(b"set count%d 0 0 2\r\n15\r\nget count%d none%d\r\ngets count%d\r\n" % (n, n, n, n) for n in range(40))
    + b"add count1 0 0 1\r\na\r\nadd new 0 0 1\r\na\r\nreplace count1 0 0 1\r\n1\r\nreplace none 0 0 1\r\na\r\nappend count2 0 0 1\r\n1\r\n"
    b"append none 0 0 1\r\n1\r\nprepend count3 0 0 1\r\n1\r\nincr count1 1\r\nincr none 1\r\nincr new 1\r\ndecr count1 1\r\ndecr none 1\r\n"
    b"delete count4\r\ndelete count4\r\ntouch count5 100\r\ntouch none 100\r\ngat 100 count6 none\r\ngats 100 count6\r\n"
    b"cas count7 0 0 1 1\r\na\r\ncas none 0 0 1 1\r\na\r\nset short 0 -1 1\r\na\r\nget short\r\nset large 0 0 2000000\r\n" + b"v" * 2_000_000
    + b"\r\nset k 0 0 1 noreply\r\na\r\nget count8 count8 count8\r\n"
    b"set ten-thousand 0 0 10000\r\n" + b"v" * 10_000 + b"\r\nget ten-thousand\r\nget ten-thousand none\r\n"
)


def counted(server):
    stats = stats_of(server.address)
    return {name: int(stats[name]) for name in COUNTED if name in stats}


def test_counters_agree_with_memcached(oracle, subject):
    """The same commands give the same counts, over all partitions and workers. (memcached also counts a set whose terminator is
    wrong in cmd_set; such a set never reaches a store here.)"""
    found = []
    for server in (oracle, subject):
        converse(server.address, [Case(b"flush_all\r\nstats reset\r\n")])
        before = counted(server)
        converse(server.address, [Case(COUNTED_TEXT)])
        after = counted(server)
        found.append({name: after[name] - (before[name] if name == "curr_items" else 0) for name in after})
    # get_flushed and curr_items depend on when hidden items are swept
    wanted, got = ({name: value for name, value in counts.items() if name not in ("get_flushed", "curr_items")} for counts in found)
    different = {name: f"memcached {wanted[name]}, subject {got.get(name)}" for name in wanted if wanted[name] != got.get(name)}
    assert not different, different


def test_reset_clears_counters_and_keeps_items(oracle, subject):
    for server in (oracle, subject):
        converse(server.address, [Case(b"set kept 0 0 1\r\na\r\nget kept\r\nget none\r\n")])
        assert ask(server.address, b"stats reset\r\n") == b"RESET\r\n"
        stats = stats_of(server.address)
        for name in ("cmd_get", "get_hits", "get_misses", "cmd_set", "total_items"):
            assert stats[name] == "0", (name, stats[name])
        assert int(stats["curr_items"]) >= 1
        assert ask(server.address, b"get kept\r\n", end=b"END\r\n") == b"VALUE kept 0 1\r\na\r\nEND\r\n"


def test_stats_is_a_barrier_of_its_connection(subject):
    """stats counts everything sent before it on the same connection, and nothing sent after it."""
    converse(subject.address, [Case(b"stats reset\r\n")])
    text = b"".join(b"set barrier%d 0 0 1\r\na\r\n" % n for n in range(100)) + b"stats\r\n" + b"set barrier 0 0 1\r\na\r\n" * 100
    ((answer, _),) = converse(subject.address, [Case(text)])
    assert b"STAT cmd_set 100\r\n" in answer


def test_numbers_that_say_what_is(subject):
    stats = stats_of(subject.address)
    assert int(stats["pid"]) in [daemon.pid for daemon in subject.daemons()]
    assert stats["pointer_size"] == "64"
    assert int(stats["curr_connections"]) >= 1
    assert int(stats["total_connections"]) >= int(stats["curr_connections"]) - 2
    assert int(stats["limit_maxbytes"]) == 1 << 30
    assert float(stats["rusage_user"]) >= 0
    settings = stats_of(subject.address, b"settings")
    assert settings["item_size_max"] == str(1 << 20)
    assert settings["maxbytes"] == str(1 << 30)
    assert settings["maxconns"] == "16384"
    assert settings["cas_enabled"] == "yes"
