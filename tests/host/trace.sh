# --trace tells every message, with the names of services, calls and fields.
"$SKINK" exec --trace trace 'echo traced' >out
[ "$(cat out)" = traced ]
grep -q ' -> vm vm::Fork ' trace
grep -q ' -> vfs write(0x1, ' trace
grep -q 'switch ' trace

# An answer of vfs carries the name of the call it answers.
grep -q ' vfs -> .* write = 0x7' trace
