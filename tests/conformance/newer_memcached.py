"""Where memcached 1.6.45 answers otherwise than Debian's 1.6.18. The subject goes with 1.6.45; the oracle may be either.

Each row tells what is sent, what each of the two says to it, and why. test_newer_memcached.py holds the oracle to what its version says
and the subject to what 1.6.45 says. `pattern` finds lines of the same kind in other tests' requests: where the oracle is the older one,
`comparable()` leaves those cases out, so a difference is tolerated by a row of this table or not at all.

AUTHENTICATION_ROWS are about a server with a file of users (test_client_authentication.py). OWN_LINES are memcached's own
mistakes, in both versions: what it says, what the subject says instead, and why; NEW_BUGS those that only 1.6.45 makes.
"""

import re
from typing import NamedTuple

import servers

BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
BAD_TOKEN = b"CLIENT_ERROR bad token in command line format\r\n"
INVALID = b"CLIENT_ERROR invalid flag\r\n"
OLD_INVALID = b"CLIENT_ERROR invalid or duplicate flag\r\n"
FLAGS_19 = b" c f h k l O1 q s t u v N0 R0 T0 C0 F0 I P1 L1"


class Row(NamedTuple):
    name: str
    pattern: bytes | None  # of the lines that this row is about; None: those of another row
    request: bytes
    old: bytes  # what 1.6.18 says; CAS numbers as #1, #2 in the order of their appearance, or none of them so
    new: bytes  # what 1.6.45 says
    why: str


def flagged(flag, commands=b"gsda"):
    """Lines of a meta command with that flag."""
    return rb"^m[%s] +\S+ (?:.* )?%s" % (commands, flag)


WHOLE_WORD = (rb"(?:reset|detail|settings|cachedump|conns|extstore|items|slabs|sizes|reassign|automove|ratio|tune|mode|flat|segmented|temp_ttl"
              rb"|crawl|metadump|tocrawl|sleep|enable|disable|all|hash|on|off|dump|item_size|max_frag|free_memchunks|low_ttl)(?= |\r?$)")

# An unknown or repeated flag, a number that is none, a key that is not base64.
WRONG_MD = (rb"^md +\S+ (?:.* )?(?:[^bCEIkOqTxcfhlstuvNRFMJDPL \r\n]|[TNR](?![-+]?\d+(?= |\r?$))|[CEJDF](?!\+?\d{1,10}(?= |\r?$))|M(?!\S(?= |\r?$)))"
            rb"|^md +\S+ (?:.* )?(\S)\S*(?: .*)? \1|^md +(?![A-Za-z0-9+/=]+ )\S+ (?:.* )?b")

ROWS = [
    # What is newer.
    Row("ms tells the size", flagged(b"s", b"s"), b"ms <k> 2 s\r\nhi\r\nms <k> 4 MA s k\r\n you\r\n", b"HD\r\nHD k<k>\r\n",
        b"HD s2\r\nHD s6 k<k>\r\n",
        "s with ms: the size of the stored item, after an append of the whole"),
    Row("ms gives a CAS", flagged(b"E"), b"ms <k> 2 E777 c\r\nhi\r\nmg <k> c v\r\n", INVALID + b"EN\r\n", b"HD c777\r\nVA 2 c777\r\nhi\r\n",
        "E is the item's new CAS"),
    Row("ms compares a CAS and gives another", None,
        b"ms <k> 2 E777\r\nhi\r\nms <k> 2 C776 E900 c\r\nno\r\nms <k> 3 C777 E900 c\r\nyes\r\nmg <k> c v\r\n",
        INVALID * 3 + b"EN\r\n", b"HD\r\nEX c0\r\nHD c900\r\nVA 3 c900\r\nyes\r\n", "E with C"),
    Row("mg gives a CAS to what it makes", None, b"mg <k> N0 E777 c\r\nmg <k> E888 c\r\n", INVALID * 2, b"HD c777 W\r\nHD c777 Z\r\n",
        "E counts where mg makes the item"),
    Row("md gives a CAS to what it makes stale", None, b"ms <k> 2 F1\r\nhi\r\nmd <k> I E777\r\nmg <k> c\r\n",
        b"HD\r\n" + OLD_INVALID + b"HD c#1\r\n",
        b"HD\r\nHD\r\nHD c777 X W\r\n", "E with I"),
    Row("ma gives a CAS", None, b"ma <k> N0 J5 E777 c v\r\nma <k> E888 c v\r\nmg <k> c\r\n", OLD_INVALID * 2 + b"EN\r\n",
        b"VA 1 c777\r\n5\r\nVA 1 c888\r\n6\r\nHD c888\r\n", "E where ma makes the item, and where it changes it"),
    Row("a CAS that is no number", None, b"ms <k> 2 Ex\r\nhi\r\nmg <k> E\r\n", INVALID * 2, BAD_TOKEN * 2, "E takes a number"),
    Row("md leaves an empty item", flagged(b"x"), b"ms <k> 2 F7 T100\r\nhi\r\nmd <k> x\r\nmg <k> f s t v\r\n",
        b"HD\r\n" + OLD_INVALID + b"VA 2 f7 s2 t100\r\nhi\r\n", b"HD\r\nHD\r\nVA 0 f0 s0 t-1\r\n\r\n",
        "x takes value, flags and time to live away, and leaves the item"),
    Row("md leaves a stale empty item", None, b"ms <k> 2 F7\r\nhi\r\nmd <k> x I T30\r\nmg <k> f s t v\r\n",
        b"HD\r\n" + OLD_INVALID + b"VA 2 f7 s2 t-1\r\nhi\r\n", b"HD\r\nHD\r\nVA 0 f0 s0 t30 X W\r\n\r\n", "x with I"),
    Row("x of nothing", None, b"md <k> x\r\nmg <k>\r\n", OLD_INVALID + b"EN\r\n", b"NF\r\nEN\r\n", "x makes no item"),
    Row("x means nothing elsewhere", None, b"ms <k> 2 x\r\nhi\r\nmg <k> x v\r\n", INVALID * 2, b"HD\r\nVA 2\r\nhi\r\n",
        "a flag that is known is let through by every command"),
    Row("append and prepend make the item", flagged(b"M[AP] (?:.* )?N", b"s"),
        b"ms <k> 2 MA N30\r\nhi\r\nmg <k> t v\r\nms <k> 4 MP N30\r\noh, \r\nmg <k> v\r\n",
        b"NS\r\nEN\r\nNS\r\nEN\r\n", b"HD\r\nVA 2 t30\r\nhi\r\nHD\r\nVA 6\r\noh, hi\r\n",
        "N with M: a missing item is made, with that time to live"),
    Row("the other way round", flagged(b"N(?:.* )M[AP]", b"s"), b"ms <k> 2 N0 MP\r\nhi\r\nmg <k> t v\r\n", b"NS\r\nEN\r\n",
        b"HD\r\nVA 2 t-1\r\nhi\r\n", "as above"),
    Row("me tells the time to live", rb"^me ", b"ms <k> 2 T100\r\nhi\r\nme <k>\r\n", b"HD\r\nME <k> exp=-100 la=0 cas=#1 fetch=no cls=# size=#\r\n",
        b"HD\r\nME <k> exp=100 la=0 cas=#1 fetch=no cls=# size=#\r\n", "1.6.18 takes the difference the wrong way round"),
    Row("mg compares a CAS", flagged(b"C", b"g"), b"ms <k> 2 E777\r\nhi\r\nmg <k> v C777\r\nmg <k> v C778\r\nmg <k> C777 v f c\r\n",
        INVALID + b"EN\r\n" * 3,
        b"HD\r\nHD\r\nVA 2\r\nhi\r\nHD f0 c777\r\n", "with C the value is left out when the client has it already"),
    Row("ma hides what it makes quietly", rb"^ma +\S+ (?:.* )?(?:q.* N|N.* q)", b"ma <k> N0 q J5\r\nmn\r\nma <k> q N0\r\nmg <k> v\r\n",
        b"HD\r\nMN\r\nVA 1\r\n6\r\n", b"MN\r\nVA 1\r\n6\r\n", "1.6.18 hides only what it counts"),
    Row("md x keeps the CAS", None, b"ms <k> 2 E777\r\nhi\r\nmd <k> x\r\nmg <k> c\r\n", INVALID + OLD_INVALID + b"EN\r\n",
        b"HD\r\nHD\r\nHD c777\r\n", "it is the same item still"),
    # What is refused otherwise: since 1.6.34 one parser reads the lines of all commands.
    Row("a mode of more letters", flagged(rb"M(?:\S{2}|(?= |\r?$))", b"sa"),
        b"ms <k> 2 MAppend\r\nhi\r\nms <k> 2 MSet\r\nhi\r\nma <k> MIncr\r\nms <k> 2 M\r\nhi\r\nms <k> 2 Mset\r\nhi\r\n",
        b"CLIENT_ERROR incorrect length for M token\r\n" * 2 + OLD_INVALID + b"CLIENT_ERROR incorrect length for M token\r\n" * 2,
        b"NS\r\nHD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n" + b"CLIENT_ERROR invalid mode for ms M token\r\n" * 2,
        "the mode is the first letter, and nothing looks at the rest"),
    Row("md says what was wrong", WRONG_MD, b"md <k> q q\r\nmd <k> y\r\nmd <k> Cx\r\nmd <k> Tx\r\nmd *** b\r\n", OLD_INVALID * 5,
        b"CLIENT_ERROR duplicate flag\r\n" + INVALID + BAD_TOKEN * 2 + b"CLIENT_ERROR error decoding key\r\n",
        "md passes the parser's words on, as mg and ms always did; ma still does not"),
    Row("too many flags", rb"^m[gsda] +\S+(?: +\S+){17,}",
        b"mg <k>" + FLAGS_19 + b"\r\nmd <k>" + FLAGS_19 + b"\r\nma <k>" + FLAGS_19 + b"\r\nms <k> 2" + FLAGS_19 + b"\r\nhi\r\nmn\r\n",
        b"CLIENT_ERROR options flags are too long\r\n" + b"CLIENT_ERROR options flags too long\r\n" * 3 + b"ERROR\r\nMN\r\n",
        b"CLIENT_ERROR options flags are too long\r\n" * 2 + OLD_INVALID + b"CLIENT_ERROR options flags are too long\r\nMN\r\n",
        "one text, except ma's; and the value of an ms that is refused is thrown away, not run"),
    Row("as many flags as may be", None, b"mg <k> c f h k l O1 q s t u v N0 R0 T0 F0 I P1 L1\r\n",
        b"CLIENT_ERROR options flags are too long\r\n", b"VA 0 c#1 f0 h0 k<k> l0 O1 s0 t-1 W\r\n\r\n", "20 words, not 19"),
    Row("an ms with too long a key", rb"^ms +\S{251,}", b"ms <k:251> 2\r\nmn\r\nmn\r\n", BAD_LINE + b"MN\r\nMN\r\n", BAD_LINE + b"MN\r\n",
        "the value of an ms that is refused is thrown away, not run"),
    Row("an ma with too long a key", rb"^ma +\S{251,}", b"ma <k:251>\r\n", BAD_LINE, OLD_INVALID,
        "ma has one text for all that is wrong with its line"),
    Row("a meta command without a key", rb"^m[gsdae] *\r?$", b"mg\r\nms\r\nmd\r\nma\r\nme\r\nmg  \r\n", b"ERROR\r\n" * 4 + BAD_LINE + b"ERROR\r\n",
        BAD_LINE * 6,
        "too few words are a bad line"),
    # The classic commands: the same parser.
    Row("too few words", rb"^(?:gets?|delete|verbosity) *\r?$|^gats?(?: +\S+)? *\r?$|^(?:incr|decr|touch)(?: +\S+)? *\r?$"
        rb"|^(?:set|add|replace|append|prepend|cas)(?: +\S+){0,3} *\r?$",
        b"get\r\ngat 0\r\ntouch <k>\r\nincr <k>\r\nset <k> 0 0\r\nverbosity\r\n", b"ERROR\r\nEND\r\n" + b"ERROR\r\n" * 4, BAD_LINE * 6,
        "a bad line, not an unknown command"),
    Row("a line of fewer than four bytes", rb"\A[^\n]?\r?\n|\A[^\n\r]{2}\n", b"\r\n\nx\r\nmn\nmn\r\n", b"ERROR\r\n" * 3 + b"MN\r\n" * 2,
        BAD_LINE * 4 + b"MN\r\n", "the end of the line counts; nothing is that short"),
    Row("a delete with a time", rb"^delete +\S+ +(?!noreply *\r?$)", b"set <k> 0 0 1\r\na\r\ndelete <k> 10 noreply\r\nget <k>\r\ndelete <k> 0 0 0 0\r\n",
        b"STORED\r\nVALUE <k> 0 1\r\na\r\nEND\r\nERROR\r\n",
        b"STORED\r\nEND\r\nNOT_FOUND\r\n", "words too many are not looked at"),
    Row("words too many", rb"^(?:incr|decr|touch)(?: +\S+){4,}|^(?:set|add|replace|append|prepend)(?: +\S+){6,}|^cas(?: +\S+){7,}"
        rb"|^(?:verbosity|flush_all|cache_memlimit)(?: +\S+){3,}",
        b"incr <k> 1 2 3\r\nset <k> 0 0 1 x y\r\na\r\ntouch <k> 0 1 2 3\r\nverbosity 1 2 3\r\n", b"ERROR\r\n" * 2 + b"ERROR\r\n" * 3,
        b"NOT_FOUND\r\nSTORED\r\nTOUCHED\r\nOK\r\n", "as above"),
    Row("spaces before a command", rb"^ +\S", b"  get <k>\r\n  verbosity 1\r\n", b"END\r\nOK\r\n", b"ERROR\r\nOK\r\n",
        "the command ends at the first space; operators' commands are looked for otherwise"),
    Row("bget", rb"^bget\b", b"bget <k>\r\n", b"END\r\n", b"ERROR\r\n", "it is gone"),
    Row("a value behind a line that is wrong", rb"^(?:set|add|replace|append|prepend|cas) +(?:\S{251}|\S+ +(?!\d{1,18} +-?\d{1,18} ))"
        rb"|^cas(?: +\S+){4} *(?:\r?$| (?! *\d{1,19}(?: |\r?$)))",
        b"set <k> x 0 2\r\nmn\r\nadd <k> 0 x 2 noreply\r\nmn\r\ncas <k> 0 0 2\r\nmn\r\nset <k:251> 0 0 2\r\nmn\r\n",
        BAD_LINE + b"MN\r\nMN\r\nERROR\r\nMN\r\n" + BAD_LINE + b"MN\r\n", BAD_LINE * 3, "it is thrown away, not run"),
    Row("a length that is none", rb"^(?:set|add|replace|append|prepend|cas)(?: +\S+){3} +(?!\d{1,9}(?: |\r?$))|^ms +\S+ +(?!\d{1,9}(?: |\r?$))",
        b"set <k> 0 0 x noreply\r\nset <k> 0 0 4294967297\r\na\r\nset <k> 0 0 +1\r\na\r\n", b"STORED\r\n" * 2,
        BAD_LINE * 5, "digits only, which fit into 31 bits; the line is answered whatever it ends with"),
    Row("a number that is none", rb"^(?:incr|decr) +\S+ +(?![0-9a-z.]{1,22}(?: |\r?$))|^touch +\S+ +(?!-?[0-9a-z]{1,9}(?: |\r?$))"
        rb"|^gats? +(?!-?[0-9a-z]{1,9} )|^(?:flush_all|verbosity) +(?!-?[0-9a-z]{1,9}(?: |\r?$))|^verbosity +-"
        rb"|^m[gsda] +\S+ (?:.* )?[TNRFCEJD](?!-?\d{1,9}(?: |\r?$))",
        b"set <k> 0 0 1\r\n1\r\nincr <k> +1\r\ntouch <k> 4294967296\r\ngat +5 <k>\r\nmg <k> T+5\r\n",
        b"STORED\r\n2\r\nTOUCHED\r\nVALUE <k> 0 1\r\n2\r\nEND\r\nHD\r\n",
        b"STORED\r\nCLIENT_ERROR invalid numeric delta argument\r\n" + b"CLIENT_ERROR invalid exptime argument\r\n" * 2 + BAD_TOKEN,
        "digits and a minus sign only, and what does not fit is refused; flags and exptime of a set are still read as C reads them"),
    Row("a NUL", rb"\0", b"set <k>\0x 0 0 1\r\na\r\nget <k>\0x\r\nget <k>\r\n", b"ERROR\r\n" * 2 + b"END\r\n" * 2,
        b"STORED\r\nVALUE <k>\0x 0 1\r\na\r\nEND\r\nEND\r\n", "it is a byte like any other"),
    Row("noreply with what nobody knows", rb"^(?!(?:get|gets|gat|gats|set|add|replace|append|prepend|cas|incr|decr|delete|touch|verbosity|flush_all|m[gsdaen]|stats|watch) ).* noreply *\r?$",
        b"what noreply\r\nslabs automove x noreply\r\nlru_crawler sleep 1 noreply\r\nmn\r\n", b"ERROR\r\nERROR\r\nMN\r\n", b"MN\r\n",
        "noreply hides whatever the answer is"),
    Row("a browser", rb"^[gsacidtm]\S* .*HTTP/", b"adx / HTTP/1.1\r\nmn\r\n", b"ERROR\r\nMN\r\n", b"",
        "whatever its first letter is, it is hung up on"),
    Row("a word that is no flag", rb"^m[gsdae] +\S+ (?:.* )?[^A-Za-z0-9 \r\n]", b"mg <k> !\r\nms <k> 2 ~\r\nmn\r\nma <k> !\r\n",
        INVALID * 2 + OLD_INVALID, BAD_LINE + BAD_LINE + b"MN\r\n" + BAD_LINE, "what begins with neither letter nor digit spoils the line as such"),
    # Operators' commands.
    Row("words cut short", rb"^(?:stats|slabs|lru|lru_crawler|watch|extstore) +(?:%s +)?(?!%s)[a-z_]" % (WHOLE_WORD, WHOLE_WORD), b"stats r\r\nslabs au 1\r\nlru_crawler s 1\r\n",
        b"ERROR\r\n" * 3, b"RESET\r\nOK\r\nOK\r\n", "a word may be cut short"),
    Row("more to move automatically", rb"^slabs +automove +(?:window|freeratio)", b"slabs automove window 5\r\nslabs automove window 1\r\nslabs automove freeratio 0.1\r\n",
        BAD_LINE * 3, b"OK\r\nCLIENT_ERROR automove window too low or too high\r\nOK\r\n", "new"),
    Row("the statistics of sizes", rb"^stats +sizes_", b"stats sizes_enable\r\n", b"STAT sizes_status enabled\r\n", b"ERROR\r\n", "only an option turns them on"),
    Row("the commands that read all items", rb"^lru_crawler +mg", b"lru_crawler mgdump 0\r\n", b"ERROR\r\n", b"BADCLASS invalid class id\r\n", "new"),
    Row("shutdown", rb"^shutdown", b"shutdown\r\n", b"ERROR: shutdown not enabled\r\n", b"SERVER_ERROR: shutdown not enabled\r\n", "another word"),
]

# Users: see test_client_authentication.py.
AUTHENTICATION_ROWS = [
    Row("a password with a space", None, b"set auth 0 0 14\r\ndora two words\r\n", b"CLIENT_ERROR authentication failure\r\n", b"STORED\r\n",
        "all behind the first space is the password"),
    Row("a password that begins with a space", None, b"set auth 0 0 12\r\nanna  secret\r\n", b"STORED\r\n", b"CLIENT_ERROR authentication failure\r\n",
        "as above"),
    Row("no password", None, b"set auth 0 0 5\r\nanna \r\n", b"CLIENT_ERROR bad authentication token format\r\n",
        b"CLIENT_ERROR authentication failure\r\n", "as above"),
    Row("no user", None, b"set auth 0 0 7\r\n secret\r\n", b"CLIENT_ERROR bad authentication token format\r\n",
        b"CLIENT_ERROR authentication failure\r\n", "as above"),
    Row("a word too many", None, b"set auth 0 0 17\r\nanna secret extra\r\n", b"STORED\r\n", b"CLIENT_ERROR authentication failure\r\n",
        "as above"),
    Row("a short line", None, b"x\r\n", b"CLIENT_ERROR unauthenticated\r\n", b"", "fewer than six bytes before the newline: it hangs up"),
]
# Of 1.6.45 only: the subject says what 1.6.18 says.
AUTHENTICATION_NEW_BUGS = [
    Row("a line that ends with a newline only", None, b"set auth 0 0 11\nanna secret\r\nget <k>\r\n", b"STORED\r\nEND\r\n",
        b"CLIENT_ERROR unauthenticated\r\n", "the last digit of the length is taken for the line's end"),
]

# memcached's own bugs in text, in both versions: what it says, and what the subject says.
OWN_LINES = [
    Row("a key in another form than asked for", rb"^mg (?=.* b)(?=.* k)(?=.* N)",
        b"ms YWJj 1 b\r\nx\r\nmg abc k v\r\nmd abc\r\nms abc 1\r\ny\r\nmg YWJj b k v\r\nmd abc\r\n",
        b"HD\r\nVA 1 kYWJj b\r\nx\r\nHD\r\nHD\r\nVA 1 kabc\r\ny\r\nHD\r\n", b"HD\r\nVA 1 kabc\r\nx\r\nHD\r\nHD\r\nVA 1 kYWJj b\r\ny\r\nHD\r\n",
        "k gives the key back as the item's maker wrote it, not as the client asked; and of a number made by ma with b as bytes that may end the line"),
    Row("an ma with too long an opaque", rb"^m[ag] .* O\S{32,}", b"ma <k> N0 J5 O" + b"o" * 32 + b"\r\nmg <k> v\r\n", b"CLIENT_ERROR opaque token too long\r\nVA 1\r\n5\r\n",
        b"CLIENT_ERROR opaque token too long\r\nEN\r\n", "memcached counts (and mg makes and touches items), and then refuses"),
    Row("base64 with letters that are none", None, b"mg AAAA\tAAAA k b\r\n", b"EN kAAAAAAAA b\r\n", b"EN kAAAA\tAAAA b\r\n", "memcached passes over what is not base64; we do, and give back what was sent"),
    Row("the time to live of a number that grows", None, b"ma <k> N0 J9\r\nma <k> T100\r\nmg <k> t v\r\n", b"HD\r\nHD\r\nVA 2 t-1\r\n10\r\n", b"HD\r\nHD\r\nVA 2 t100\r\n10\r\n",
        "where the number needs more bytes, memcached gives the time to live to the item that it has just replaced"),
]


# With a file of users. Refusals of one packet: memcached has one answer for all of them, and none if the last is right.
AUTHENTICATION_BUGS = [
    Row("refused together", None, b"get <k>\r\nversion\r\nset auth 0 0 10\r\nanna wrong\r\n", b"CLIENT_ERROR authentication failure\r\n",
        b"CLIENT_ERROR unauthenticated\r\n" * 2 + b"CLIENT_ERROR authentication failure\r\n", "every command has its answer"),
]

# 1.6.45's own, which 1.6.18 has not and the subject has not, either.
NEW_BUGS = [
    Row("me of a key that comes as base64", rb"^me +\S+ +b *\r?$", b"ms YWJj 1 b\r\nx\r\nme YWJj b\r\nmd YWJj b\r\n",
        b"HD\r\nME YWJj exp=-1 la=0 cas=#1 fetch=no cls=# size=#\r\nHD\r\n", b"HD\r\nEN\r\nHD\r\n", "b is looked for only where another word follows"),
    Row("a get with too long a key", rb"^(?:get|gets|gat|gats) (?:.* )?[^ \r\n]{251}", b"get <k:251>\r\nmn\r\n", BAD_LINE + b"MN\r\n", BAD_LINE + b"\r\nMN\r\n",
        "an empty line more than the answer has"),
]

OLD_PATTERNS, _OWN_PATTERNS, _NEW_PATTERNS = ([re.compile(row.pattern, re.MULTILINE) for row in rows if row.pattern]
                                                for rows in (ROWS, OWN_LINES, NEW_BUGS))
_VALUE = re.compile(rb"(?:(?:set|add|replace|append|prepend|cas) +\S+ +\S+ +\S+|ms +\S+) +(\d{1,10})(?= |\r?\n)")


def command_lines(request):
    """Without the values between them."""
    at = 0
    while at < len(request):
        line = request[at:request.find(b"\n", at) + 1 or len(request)]
        at += len(line)
        value = _VALUE.match(line)
        if value:
            at += int(value[1]) + 2
        yield line


# Of lines to which the oracle in use is not to answer as the subject does. The last proxy of 0.1.0 answers some as either version does.
_PATTERNS = _OWN_PATTERNS + (OLD_PATTERNS if servers.ORACLE_IS_OLD or "egret-proxy" in servers.OLDER else _NEW_PATTERNS)


def differs(request, patterns=_PATTERNS):
    """Whether a line of it is one that these patterns are about."""
    return any(pattern.search(line) for line in command_lines(request) for pattern in patterns)


def comparable(cases):
    """Those that the oracle is to answer as the subject does."""
    return [case for case in cases if not differs(b"".join(case.pieces)) and not differs(case.after or b"")]
