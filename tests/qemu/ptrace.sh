#: timeout 200
# Programs trace others: what the tracer sees is what it sees on Linux, whose output the expected one is. Then pm, vfs and vm are killed after
# their k-th message while a tracer follows a child, and it misses nothing; and requests of no meaning harm nobody.
ptrace
ptrace steps
ptrace random
for k in 1 2 3 5 8 13 21 34 55 89 144 233 377; do
    service inject pm kill-after $k
    ptrace calls
done
for service in vfs vm; do
    for k in 5 21 89 233; do
        service inject $service kill-after $k
        ptrace calls
    done
done
for k in 10 40 160 640; do
    service inject pm kill-after $k
    ptrace steps
done
for k in 30 80 150; do
    service inject pm kill-after $k
    ptrace >/tmp/killed
    cat /tmp/killed
done
