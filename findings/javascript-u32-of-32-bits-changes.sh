#!/usr/bin/env bash
# Guess: a component of JavaScript that returns 3,000,000,000 as a `u32` returns 3,000,000,000, or the call is an error.
# Seen: componentize-qjs 0.4.5 returns 2,147,483,647 for it and for each number of 2^31 and more. componentize-js 0.23.0 returns
# the low 32 bits of the floating-point number: 0 for 2^31, 3,221,225,472 for 3,000,000,000. Neither is an error.
set -euo pipefail
cd "$(mktemp -d)"
cat > package.json <<'JSON'
{ "name": "finding", "version": "1.0.0", "private": true, "type": "module" }
JSON
npm install --silent --no-fund --no-audit componentize-qjs@0.4.5 @bytecodealliance/componentize-js@0.23.0 @bytecodealliance/jco@1.35.0 node@22.12.0
cat > numbers.wit <<'WIT'
package finding:numbers;
world numbers {
  export number: func(text: string) -> u32;
}
WIT
cat > numbers.js <<'JS'
export function number(text) {
  return Number(text);
}
JS
node_modules/.bin/componentize-qjs --wit numbers.wit --world numbers --js numbers.js --sync --output qjs.wasm > log 2>&1 || { cat log; exit 1; }
node_modules/.bin/componentize-js numbers.js --wit numbers.wit --world-name numbers -d http -d fetch-event --out js.wasm > log 2>&1 || { cat log; exit 1; }
for tool in qjs js; do
  node_modules/.bin/jco transpile "$tool.wasm" --out-dir "$tool" --quiet > log 2>&1 || { cat log; exit 1; }
done
cat > run.mjs <<'JS'
const texts = ["2147483647", "2147483648", "3000000000", "4294967295"];
// The low 32 bits of a number that no 32-bit integer with a sign can be.
const floating = (text) =>
  Number(text) === (Number(text) | 0) ? Number(text) : new Uint32Array(Float64Array.of(Number(text)).buffer)[0];
const expected = { qjs: [2147483647, 2147483647, 2147483647, 2147483647], js: texts.map(floating) };
let changed = false;
for (const tool of ["qjs", "js"]) {
  const { number } = await import(`./${tool}/${tool}.js`);
  const seen = texts.map((text) => number(text));
  console.log(`componentize-${tool}:`, texts.map((text, at) => `${text} is ${seen[at]}`).join(", "));
  changed ||= seen.some((value, at) => value !== expected[tool][at]);
}
if (changed) {
  console.log("this has changed");
  process.exit(1);
}
JS
echo "componentize-qjs 0.4.5 and componentize-js 0.23.0, run by jco 1.35.0 on Node.js 22.12.0:"
node_modules/.bin/node run.mjs
