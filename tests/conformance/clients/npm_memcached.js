// Every call of the npm client `memcached`, against the server named by the first argument (host:port).
// Each check prints one line; the exit status is 1 when one fails.
'use strict';
const assert = require('assert');
const { promisify } = require('util');
const Memcached = require('memcached');
const { check, status } = require('./check');

const client = new Memcached(process.argv[2], { timeout: 10000, retries: 0, poolSize: 10, maxValue: 1048576 });
const call = (name, ...args) => promisify(client[name]).apply(client, args);

async function storage() {
  await check('set and get', async () => {
    assert.strictEqual(await call('set', 'node-a', 'one', 100), true);
    assert.strictEqual(await call('get', 'node-a'), 'one');
  });
  await check('get of nothing', async () => assert.strictEqual(await call('get', 'node-none'), undefined));
  await check('objects, numbers and buffers come back as they went', async () => {
    const object = { text: 'käse\r\nEND\r\n', list: [1, 2, 3] };
    const binary = Buffer.from(Array.from({ length: 5000 }, (_, n) => n & 255));
    await call('set', 'node-object', object, 0);
    await call('set', 'node-number', 42, 0);
    await call('set', 'node-buffer', binary, 0);
    assert.deepStrictEqual(await call('get', 'node-object'), object);
    assert.strictEqual(await call('get', 'node-number'), 42);
    assert.ok(binary.equals(await call('get', 'node-buffer')));
  });
  await check('add, replace, append, prepend', async () => {
    await call('del', 'node-b');
    assert.strictEqual(await call('add', 'node-b', 'b', 0), true);
    await assert.rejects(call('add', 'node-b', 'c', 0), /not stored/i);
    assert.strictEqual(await call('replace', 'node-b', 'bb', 0), true);
    assert.strictEqual(await call('append', 'node-b', '>'), true);
    assert.strictEqual(await call('prepend', 'node-b', '<'), true);
    assert.strictEqual(await call('get', 'node-b'), '<bb>');
    await assert.rejects(call('replace', 'node-none', 'x', 0), /not stored/i);
    await assert.rejects(call('append', 'node-none', 'x'), /not stored/i);
  });
  await check('delete and touch', async () => {
    assert.strictEqual(await call('touch', 'node-b', 100), true);
    assert.strictEqual(await call('del', 'node-b'), true);
    assert.strictEqual(await call('del', 'node-b'), false);
    assert.strictEqual(await call('touch', 'node-b', 100), false);
  });
}

async function numbers() {
  await check('incr and decr', async () => {
    await call('set', 'node-n', '10', 0);
    assert.strictEqual(await call('incr', 'node-n', 5), 15);
    assert.strictEqual(await call('decr', 'node-n', 20), 0);
    assert.strictEqual(await call('incr', 'node-none', 1), false);
    await call('set', 'node-word', 'word', 0);
    await assert.rejects(call('incr', 'node-word', 1), /non-numeric/);
  });
  await check('gets and cas', async () => {
    await call('set', 'node-c', 'first', 0);
    const found = await call('gets', 'node-c');
    assert.strictEqual(found['node-c'], 'first');
    assert.strictEqual(await call('cas', 'node-c', 'second', found.cas, 0), true);
    assert.strictEqual(await call('cas', 'node-c', 'third', found.cas, 0), false);
    assert.strictEqual(await call('get', 'node-c'), 'second');
  });
}

async function wide() {
  await check('getMulti of 300 keys', async () => {
    const names = Array.from({ length: 300 }, (_, n) => `node-m${n}`);
    await Promise.all(names.filter((_, n) => n % 2).map((name) => call('set', name, `value of ${name}`, 0)));
    const found = await call('getMulti', names);
    assert.strictEqual(Object.keys(found).length, 150);
    names.filter((_, n) => n % 2).forEach((name) => assert.strictEqual(found[name], `value of ${name}`));
  });
  await check('values of many sizes, at once', async () => {
    const sizes = [0, 1, 100, 4000, 4096, 5000, 100000, 1000000];
    await Promise.all(sizes.map(async (size) => {
      await call('set', `node-s${size}`, 'v'.repeat(size), 0);
      assert.strictEqual((await call('get', `node-s${size}`)).length, size);
    }));
  });
  await check('a thousand commands in flight', async () => {
    await Promise.all(Array.from({ length: 1000 }, async (_, n) => {
      await call('set', `node-p${n}`, `${n}`, 0);
      assert.strictEqual(await call('get', `node-p${n}`), `${n}`);
    }));
  });
}

async function server() {
  await check('version', async () => assert.match((await call('version'))[0].version, /^[0-9]/));
  await check('stats', async () => assert.ok((await call('stats'))[0].curr_items > 0));
  await check('settings', async () => assert.strictEqual((await call('settings'))[0].item_size_max, 1048576));
  await check('flush', async () => {
    assert.deepStrictEqual(await call('flush'), [true]);
    assert.strictEqual(await call('get', 'node-a'), undefined);
  });
}

storage().then(numbers).then(wide).then(server).then(() => {
  client.end();
  process.exit(status());
});
