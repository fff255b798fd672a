// What the scripts of npm's clients share: a line a check, and how it went with all of them.
'use strict';

let failed = 0;

async function check(what, body) {
  try {
    await body();
    console.log(`pass  ${what}`);
  } catch (error) {
    failed = 1;
    console.log(`FAIL  ${what}: ${error && error.message ? error.message : error}`);
  }
}

module.exports = { check, status: () => failed };
