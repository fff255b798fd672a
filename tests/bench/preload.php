<?php
// The load of preload.py: gets back to back, then multigets of 50, of values of 40 bytes. preload.php PORT SECONDS prints JSON.
[, $port, $seconds] = $argv;
const VALUE = '0123456789012345678901234567890123456789';

$client = new Memcached();
$client->addServer('127.0.0.1', (int) $port);
$keys = array_map(fn ($i) => "key:$i", range(0, 49));
foreach ($keys as $key) $client->set($key, VALUE) || exit("a set failed: {$client->getResultMessage()}\n");

// Calls $ask for so many seconds. Returns how long each took, in ns.
function timed(callable $ask, float $seconds): array
{
    $took = [];
    $end = hrtime(true) + (int) ($seconds * 1e9);
    while (($begun = hrtime(true)) < $end) {
        $ask() || exit("a get found something else\n");
        $took[] = hrtime(true) - $begun;
    }
    sort($took);
    return $took;
}

$gets = timed(fn () => $client->get('key:1') === VALUE, $seconds);
$multigets = timed(fn () => count($client->getMulti($keys)) === 50, $seconds);
echo json_encode([
    'p50' => $gets[intdiv(count($gets), 2)] / 1000,
    'p99' => $gets[intdiv(count($gets) * 99, 100)] / 1000,
    'mkeys' => 50 * count($multigets) / array_sum($multigets) * 1000,
]);
