<?php
// Debian's php-memcached (libmemcached): php_memcached.php HOST PORT text|binary.
$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, $argv[3] === 'binary');
$client->setOption(Memcached::OPT_COMPRESSION, false);
$client->addServer($argv[1], (int) $argv[2]);
$key = "php-{$argv[3]}-";
$failed = 0;

function check(string $what, bool $is_so): void
{
    global $failed, $client;
    echo $is_so ? 'pass  ' : 'FAIL  ', $what, $is_so ? '' : ' (' . $client->getResultMessage() . ')', "\n";
    $failed |= !$is_so;
}

check('set, get', $client->set($key . 'a', 'text', 100) && $client->get($key . 'a') === 'text');
check('get of nothing', $client->get($key . 'none') === false && $client->getResultCode() === Memcached::RES_NOTFOUND);
foreach (['', "two\r\nlines", 42, 1.5, true, ['a' => [1, 2]]] as $value) {
    check('value ' . json_encode($value), $client->set($key . 'v', $value) && $client->get($key . 'v') === $value);
}
$many = [];
for ($n = 0; $n < 200; $n++) {
    $many[$key . 'm' . $n] = "value $n";
}
check('multi', $client->setMulti($many) && $client->getMulti(array_keys($many), Memcached::GET_PRESERVE_ORDER) === $many);
$client->delete($key . 'b');
check('add', $client->add($key . 'b', 'b') && !$client->add($key . 'b', 'c')
    && $client->getResultCode() === ($argv[3] === 'binary' ? Memcached::RES_DATA_EXISTS : Memcached::RES_NOTSTORED));
check('replace', $client->replace($key . 'b', 'bb') && !$client->replace($key . 'none', 'x'));
check('append, prepend', $client->append($key . 'b', '>') && $client->prepend($key . 'b', '<') && $client->get($key . 'b') === '<bb>');
$found = $client->get($key . 'a', null, Memcached::GET_EXTENDED);
check('cas', $client->cas($found['cas'], $key . 'a', 'new') && !$client->cas($found['cas'], $key . 'a', 'newer')
    && $client->getResultCode() === Memcached::RES_DATA_EXISTS && $client->get($key . 'a') === 'new');
check('incr, decr', $client->set($key . 'n', '10') && $client->increment($key . 'n', 5) === 15 && $client->decrement($key . 'n', 20) === 0);
check('incr of nothing', $client->increment($key . 'none', 1) === false && $client->getResultCode() === Memcached::RES_NOTFOUND);
if ($argv[3] === 'binary') {
    $client->delete($key . 'i');
    check('incr with a first value', $client->increment($key . 'i', 5, 7) === 7 && $client->increment($key . 'i', 5, 7) === 12);
}
check('touch', $client->touch($key . 'a', 200) && !$client->touch($key . 'none', 200));
$client->getDelayed(array_keys($many), true);
check('getDelayed', count($client->fetchAll()) === 200);
check('delete', $client->delete($key . 'a') && !$client->delete($key . 'a') && $client->get($key . 'a') === false);
check('deleteMulti', array_unique(array_values($client->deleteMulti(array_keys($many)))) === [true]);
$large = str_repeat('0123456789', 92160);
check('900 KiB', $client->set($key . 'large', $large) && $client->get($key . 'large') === $large);
check('too large', !$client->set($key . 'huge', str_repeat('x', 1 << 20)));
check('after too large', $client->set($key . 'v', 'v') && $client->get($key . 'v') === 'v');
check('version', preg_match('/^\d/', current($client->getVersion())) === 1);
check('stats', current($client->getStats())['curr_items'] > 0);
check('flush', $client->flush() && $client->get($key . 'b') === false);
exit($failed);
