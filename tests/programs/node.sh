# Node.js: timers, streams, workers, children, local sockets, files and their watching, compression and digests, by its event loop.
#: package nodejs
#: timeout 900
#: memory 1024
cat >/tmp/a.js <<'J'
const fs = require('fs'), os = require('os'), net = require('net'), zlib = require('zlib'), path = require('path'), crypto = require('crypto'), util = require('util');
const { spawn, execFileSync, fork } = require('child_process'), { Worker, isMainThread, parentPort, workerData } = require('worker_threads'), { pipeline, Transform } = require('stream'), { once, EventEmitter } = require('events');
if (!isMainThread) { let s = 0; for (let i = 0; i < workerData; i++) s += i; parentPort.postMessage(s); return; }
if (process.argv[2] === 'child') { process.on('message', m => { process.send(m * 2); process.disconnect(); }); return; }
(async () => {
  const order = []; setImmediate(() => order.push('immediate')); process.nextTick(() => order.push('tick')); Promise.resolve().then(() => order.push('promise')); await new Promise(r => setImmediate(r)); console.log(order.join());
  console.log(await Promise.all([1e5, 2e5].map(n => new Promise(r => new Worker(__filename, { workerData: n }).on('message', r)))));
  const dir = fs.mkdtempSync('/tmp/node-'); process.chdir(dir); fs.writeFileSync('a', 'line\n'.repeat(20000)); fs.symlinkSync('a', 'l'); fs.renameSync('a', 'b'); console.log(fs.readdirSync('.').sort(), fs.statSync('b').size);
  await util.promisify(pipeline)(fs.createReadStream('b'), new Transform({ transform(c, e, f) { f(null, c.toString().toUpperCase()); } }), zlib.createGzip(), fs.createWriteStream('b.gz'));
  const text = zlib.gunzipSync(fs.readFileSync('b.gz')); console.log(text.length, text.toString('latin1', 0, 4), crypto.createHash('sha256').update(text).digest('hex'));
  const sort = spawn('sort', ['-n']); let out = ''; sort.stdout.on('data', d => out += d); sort.stdin.end('10\n9\n8\n'); const [code] = await once(sort, 'close'); console.log(out.replace(/\n/g, ','), code, execFileSync('echo', ['sync']).toString().trim());
  const child = fork(__filename, ['child']); child.send(21); const [answer] = await once(child, 'message'); await once(child, 'exit'); console.log(answer);
  const sleeper = spawn('sleep', ['100']); sleeper.kill('SIGTERM'); console.log((await once(sleeper, 'exit')).join());
  const server = net.createServer(s => s.on('data', d => s.end(d.toString().toUpperCase()))); server.listen(path.join(dir, 's')); await once(server, 'listening');
  console.log((await Promise.all([1, 2, 3].map(n => new Promise((r, f) => { const c = net.connect(path.join(dir, 's')); let got = ''; c.on('data', d => got += d).on('end', () => r(got)).on('error', f); c.write('client ' + n); })))).join()); server.close();
  console.log((await once(net.connect('/nonexistent'), 'error').catch(e => [e]))[0].code);
  console.log(await new Promise(r => crypto.pbkdf2('p', 's', 1000, 16, 'sha512', (e, k) => r(k.toString('hex')))), crypto.randomBytes(8).length);
  console.log(await Promise.all([...Array(8).keys()].map(n => fs.promises.writeFile('f' + n, String(n)).then(() => fs.promises.readFile('f' + n, 'utf8')))).then(l => l.join('')));
  const alive = setInterval(() => {}, 1000), caught = once(process, 'SIGUSR2'); process.kill(process.pid, 'SIGUSR2'); console.log((await caught)[0]); clearInterval(alive); const garbage = []; for (let i = 0; i < 2e5; i++) garbage[i % 1000] = { i, s: 'x' + i }; console.log(garbage.length, [3, 1, 2].toSorted ? 1 : [3, 1, 2].sort().join(), (123456789n ** 5n).toString());
  try { null.x; } catch (e) { console.log(e.constructor.name); } process.exitCode = 4;
})();
J
node /tmp/a.js
echo "status $?"
