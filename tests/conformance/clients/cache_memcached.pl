# Debian's libcache-memcached-perl and libcache-memcached-fast-perl: cache_memcached.pl HOST PORT plain|fast.
use strict;
use warnings;
use Cache::Memcached;
use Cache::Memcached::Fast;

my ($host, $port, $which) = @ARGV;
my $fast = $which eq 'fast';
my $client = $fast ? Cache::Memcached::Fast->new({servers => ["$host:$port"], io_timeout => 20, utf8 => 0})
                   : Cache::Memcached->new({servers => ["$host:$port"], select_timeout => 20});
my $failed = 0;

sub check {
    my ($what, $is_so) = @_;
    print $is_so ? 'pass  ' : 'FAIL  ', $what, "\n";
    $failed = 1 unless $is_so;
}

sub is {
    my ($left, $right) = @_;
    return defined $left && $left eq $right;
}

my $key = "pl-$which-";
check('set, get', $client->set($key . 'a', 'text', 100) && is($client->get($key . 'a'), 'text'));
check('get of nothing', !defined $client->get($key . 'none'));
check('values', $client->set($key . 'v', $_) && is($client->get($key . 'v'), $_)) for ('', "two\r\nlines", 42, 'v' x 5000);
check('an object', $client->set($key . 'o', {a => [1, 2]}) && $client->get($key . 'o')->{a}[1] == 2);
$client->set("${key}m$_", $_) for 0 .. 199;
my $found = $client->get_multi(map {"${key}m$_"} 0 .. 399);
check('multi', keys %$found == 200 && is($found->{"${key}m17"}, 17));
$client->delete($key . 'b');
check('add', $client->add($key . 'b', 'b') && !$client->add($key . 'b', 'c'));
check('replace', $client->replace($key . 'b', 'bb') && !$client->replace($key . 'none', 'x'));
check('append, prepend', $client->append($key . 'b', '>') && $client->prepend($key . 'b', '<') && is($client->get($key . 'b'), '<bb>'));
check('incr, decr', $client->set($key . 'n', 10) && is($client->incr($key . 'n', 5), 15) && $client->decr($key . 'n', 20) == 0);
check('incr of nothing', !$client->incr($key . 'none', 1));
if ($fast) {
    my $pair = $client->gets($key . 'a');
    check('cas', $pair->[1] eq 'text' && $client->cas($key . 'a', $pair->[0], 'new') && !$client->cas($key . 'a', $pair->[0], 'newer'));
    check('cas_multi', !(grep { !$_ } values %{$client->cas_multi(map { [$key . 'a', $_->[0], 'newest'] } $client->gets($key . 'a'))}));
    check('touch', $client->touch($key . 'a', 100) && !$client->touch($key . 'none', 100));
    check('gat', is($client->gat(100, $key . 'a'), 'newest'));
    check('set_multi', !(grep { !$_ } values %{$client->set_multi(map { ["${key}s$_", $_] } 0 .. 99)}));
    check('delete_multi', !(grep { !$_ } values %{$client->delete_multi(map {"${key}s$_"} 0 .. 99)}));
    check('versions', (values %{$client->server_versions})[0] =~ /^\d/);
    $client->set($key . 'quiet', 1);  # in void context it asks for no reply
    $client->nowait_push;
    check('noreply', is($client->get($key . 'quiet'), 1));
}
check('delete', $client->delete($key . 'a') && !$client->delete($key . 'a') && !defined $client->get($key . 'a'));
my $large = '0123456789' x 92_160;
check('900 KiB', $client->set($key . 'large', $large) && is($client->get($key . 'large'), $large));
check('stats', $client->stats('misc')->{total}{curr_items} > 0) unless $fast;
exit $failed;
