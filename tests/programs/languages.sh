# Lua, Ruby, PHP and Tcl: what their own libraries do with files, processes, threads and data.
#: package lua5.4,ruby,php-cli,tcl,tzdata
#: timeout 600
#: memory 768
cat >/tmp/a.lua <<'L'
local words = {}
for w in ("the cat and the dog"):gmatch('%a+') do words[w] = (words[w] or 0) + 1 end
local keys = {} for k in pairs(words) do keys[#keys + 1] = k end table.sort(keys)
for _, k in ipairs(keys) do io.write(k, '=', words[k], ' ') end print()
local f = assert(io.open('/tmp/lua.txt', 'w')) for i = 1, 10000 do f:write(i, '\n') end f:close()
local n = 0 for line in io.lines('/tmp/lua.txt') do n = n + tonumber(line) end print(n)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end) print(co(), co(), co())
local p = io.popen('sort -n', 'w') for i = 3, 1, -1 do p:write(i, '\n') end p:close()
print(pcall(error, { code = 3 })) print(string.pack('>I4', 66051):byte(1, -1)) print(2^53 | 0, 7 // 2, -7 % 3, math.type(1.0))
print(os.rename('/tmp/lua.txt', '/tmp/lua2.txt'), os.remove('/tmp/nonexistent')) collectgarbage() print(os.execute('exit 5'))
L
lua5.4 /tmp/a.lua | sed 's/table: 0x.*/a table/'
cat >/tmp/a.rb <<'R'
require 'json'; require 'digest'; require 'tempfile'; require 'open3'; require 'set'; require 'timeout'; require 'fileutils'; require 'yaml'; require 'socket'
puts JSON.generate({ a: [1, 2.5, nil], 'b' => 'ü' }), Digest::SHA256.hexdigest('x' * 100_000)
out, status = Open3.capture2('sort -n', stdin_data: (1..100).to_a.reverse.join("\n")); puts out.lines.first(2).join, status.exitstatus
q = Queue.new; threads = 4.times.map { |i| Thread.new { 250.times { |j| q << i * j } } }; threads.each(&:join); puts q.size
r, w = IO.pipe; pid = fork { r.close; w.puts 'from the child'; exit! 4 }; w.close; puts r.read; Process.wait pid; puts $?.exitstatus
f = Fiber.new { Fiber.yield 1; 2 }; puts f.resume + f.resume; puts (1..Float::INFINITY).lazy.select(&:even?).map { |x| x * x }.first(3).inspect
begin
  Timeout.timeout(0.1) { sleep 5 }
rescue Timeout::Error
  puts 'timeout'
end
trap('USR1') { puts 'usr1' }; Process.kill('USR1', Process.pid); sleep 0.1
UNIXServer.open('/tmp/rb.sock') { |s| t = Thread.new { c = s.accept; c.puts c.gets.upcase; c.close }; UNIXSocket.open('/tmp/rb.sock') { |c| c.puts 'unix'; puts c.gets }; t.join }
Tempfile.create('x') { |t| t.write 'abc'; t.flush; puts File.size(t.path), File.stat(t.path).mode.to_s(8) }; puts 100.downto(1).reduce(:*).to_s.size, YAML.dump({ 'k' => [1, 'two'] })
FileUtils.mkdir_p '/tmp/r/a/b'; FileUtils.cp '/tmp/a.rb', '/tmp/r/a'; puts Dir.glob('/tmp/r/**/*').sort.join(' '); puts IO.select([IO.pipe[0]], nil, nil, 0).inspect
R
ruby /tmp/a.rb
cat >/tmp/a.php <<'P'
<?php echo json_encode(['a' => [1, 2.5, null], 'ü' => true]), "\n", hash('sha256', str_repeat('x', 100000)), "\n"; preg_match_all('/(\w)(\d+)/', 'a1 b22', $m); echo implode(',', $m[2]), "\n";
$p = proc_open(['sort', '-n'], [['pipe', 'r'], ['pipe', 'w']], $pipes); fwrite($pipes[0], "3\n1\n2\n"); fclose($pipes[0]); echo stream_get_contents($pipes[1]), proc_close($p), "\n";
file_put_contents('/tmp/php.txt', implode("\n", range(1, 1000)), LOCK_EX); echo array_sum(file('/tmp/php.txt')), "\n"; function g() { for ($i = 0; $i < 3; $i++) { yield $i => $i ** 2; } } foreach (g() as $k => $v) echo "$k=$v "; echo "\n";
$s = stream_socket_server('unix:///tmp/php.sock'); $c = stream_socket_client('unix:///tmp/php.sock'); $a = stream_socket_accept($s); fwrite($c, "ping\n"); echo fgets($a); list($x, $y) = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fwrite($x, 'pair'); echo fread($y, 10), "\n";
echo (new DateTime('2024-02-29 12:00', new DateTimeZone('Europe/Berlin')))->modify('+1 year')->format('c'), "\n"; $l = [[2, 'b'], [1, 'a']]; usort($l, fn($a, $b) => $a[0] <=> $b[0]); echo serialize([1, 'x' => 1.5]), ' ', number_format(1234567.891, 2), ' ', intdiv(7, 2), ' ', 10 % 3, "\n"; try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; } exit(0);
P
php8.2 -d display_errors=0 /tmp/a.php
cat >/tmp/a.tcl <<'T'
set f [open /tmp/tcl.txt w]; for {set i 0} {$i < 1000} {incr i} { puts $f $i }; close $f; set f [open /tmp/tcl.txt]; set sum 0; while {[gets $f l] >= 0} { incr sum $l }; puts $sum
puts [exec sort -n << "3\n1\n2"]; puts [lsort -integer {10 9 8}] ; after 50 {set done 1}; vwait done; puts [dict get {a 1 b 2} b]; catch {exec false} m; puts $m
set p [open "|cat" r+]; fconfigure $p -buffering line; puts $p hello; puts [gets $p]; close $p; puts [clock format 0 -gmt 1 -format %Y-%m-%d]; puts [regexp -all -inline {\d+} a1b22]; puts [expr {2**100}]
T
tclsh /tmp/a.tcl
