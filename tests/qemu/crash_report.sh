#: timeout 300
# Each crash leaves a report: in rs for `service log`, and as a file in /var/log/crash.
hwclock -r >/dev/null
service inject rtc kill-after 1
hwclock -r >/dev/null
report=/var/log/crash/rtc-1.txt
until [ -s $report ]; do sleep 0.1; done
sleep 0.1
service log rtc | cmp - $report && echo the file is what rs says
grep -c 'end: killed as injected, at 0x' $report
grep -q '^  rip   0000000000[0-9a-f]*  rsp   00000003' $report && echo registers
grep -q '  0x[0-9a-f]* rtc::main+0x' $report && echo backtrace
grep -q '^last messages received' $report && grep -q 'chardev::[A-Z][a-z]* (label 0x[0-9a-f]*) from vfs' $report && echo messages
# One that is stopped without a word is found by its heart.
service inject rtc silence
until [ -s /var/log/crash/rtc-2.txt ]; do sleep 0.1; done
grep '^end:' /var/log/crash/rtc-2.txt
hwclock -r >/dev/null && echo rtc lives
service log ds || echo status $?
service log nobody || echo status $?
