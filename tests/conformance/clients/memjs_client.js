// The npm client `memjs`, which speaks the binary protocol: memjs_client.js HOST:PORT.
'use strict';
const assert = require('assert');
const memjs = require('memjs');
const { check, status } = require('./check');

const client = memjs.Client.create(process.argv[2], { timeout: 10, conntimeout: 10, retries: 1 });

const value = async (key) => {
  const found = await client.get(key);
  return found.value === null ? null : found.value.toString();
};

async function all() {
  await check('set and get', async () => {
    assert.strictEqual(await client.set('mj-a', 'one', { expires: 100 }), true);
    assert.strictEqual(await value('mj-a'), 'one');
  });
  await check('get of nothing', async () => assert.strictEqual(await value('mj-none'), null));
  await check('flags', async () => assert.ok((await client.get('mj-a')).flags !== undefined));
  await check('add and replace', async () => {
    await client.delete('mj-b');
    assert.strictEqual(await client.add('mj-b', 'b', {}), true);
    assert.strictEqual(await client.add('mj-b', 'c', {}), false);
    assert.strictEqual(await client.replace('mj-b', 'bb', {}), true);
    assert.strictEqual(await client.replace('mj-none', 'x', {}), false);
  });
  // Not prepend: memjs 1.3.2 sends append's opcode for it.
  await check('append', async () => {
    assert.strictEqual(await client.append('mj-b', '>'), true);
    assert.strictEqual(await value('mj-b'), 'bb>');
  });
  await check('increment and decrement', async () => {
    await client.delete('mj-n');
    assert.strictEqual((await client.increment('mj-n', 5, { initial: 10 })).value, 10);
    assert.strictEqual((await client.increment('mj-n', 5, { initial: 10 })).value, 15);
    assert.strictEqual((await client.decrement('mj-n', 20, { initial: 10 })).value, 0);
  });
  await check('touch', async () => {
    assert.strictEqual(await client.touch('mj-b', 100), true);
    assert.strictEqual(await client.touch('mj-none', 100), false);
  });
  await check('delete', async () => {
    assert.strictEqual(await client.delete('mj-b'), true);
    assert.strictEqual(await client.delete('mj-b'), false);
    assert.strictEqual(await value('mj-b'), null);
  });
  await check('900 KiB', async () => {
    const large = Buffer.from(Array.from({ length: 921600 }, (_, n) => n & 255));
    assert.strictEqual(await client.set('mj-large', large, {}), true);
    assert.ok(large.equals((await client.get('mj-large')).value));
  });
  await check('a thousand commands in flight', async () => {
    await Promise.all(Array.from({ length: 1000 }, async (_, n) => {
      await client.set(`mj-p${n}`, `${n}`, {});
      assert.strictEqual(await value(`mj-p${n}`), `${n}`);
    }));
  });
  const call = (name, ...args) => new Promise((resolve, reject) => {
    client[name](...args, (error, _server, found) => (error ? reject(error) : resolve(found)));
  });
  await check('stats', async () => assert.ok((await call('stats')).curr_items > 0));
  await check('flush', async () => {
    await call('flush');
    assert.strictEqual(await value('mj-a'), null);
  });
}

all().then(() => {
  client.close();
  process.exit(status());
});
