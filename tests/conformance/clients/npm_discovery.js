// The npm client `memcached` learns its servers as ElastiCache's clients do: `config get cluster` of the server named by the
// first argument (host:port), then a client of all that are named. The second argument: how many there must be.
'use strict';
const assert = require('assert');
const { promisify } = require('util');
const Memcached = require('memcached');
const { check, status } = require('./check');

const options = { timeout: 10000, retries: 0 };

// What the client's own parser of such answers yields: version, line feed, HOST|IP|PORT, blank, ...
function config(client) {
  return new Promise((resolve, reject) => {
    client.command(() => ({
      command: 'config get cluster',
      type: 'config get cluster',
      callback: (error, text) => (error ? reject(error) : resolve(text)),
    }));
  });
}

async function main() {
  const first = new Memcached(process.argv[2], options);
  const [version, list] = (await config(first)).split('\n');
  const servers = list.split(' ').map((node) => node.split('|')).map(([host, ip, port]) => `${ip || host}:${port}`);
  await check('version and servers', async () => {
    assert.match(version, /^\d+$/);
    assert.strictEqual(servers.length, Number(process.argv[3]));
  });
  const all = new Memcached(servers, options);
  await check('keys by all of them', async () => {
    const call = (name, ...args) => promisify(all[name]).apply(all, args);
    for (let n = 0; n < 100; ++n) {
      assert.strictEqual(await call('set', `found-${n}`, `${n}`, 0), true);
      assert.strictEqual(await call('get', `found-${n}`), `${n}`);
    }
  });
  await check('the client goes on after its answer', async () => {
    assert.strictEqual(await promisify(first.get).call(first, 'found-1'), '1');
  });
  first.end();
  all.end();
}

main().then(() => process.exit(status()), (error) => { console.log(`FAIL  ${error}`); process.exit(1); });
