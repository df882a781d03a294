#: timeout 900
# Pseudo-terminals: what a program of ours sees is what it sees on Linux, whose output the expected one is. Then tty, and then vfs, is killed
# after its k-th message while a program behind one answers lines and a flood of bytes goes through another: no byte is lost or doubled,
# and nobody sees a hang-up before the end.
ptys
for k in 1 2 3 5 8 13 21 34 55 89 144; do
    for service in tty vfs; do
        service inject $service kill-after $k
        ptys 20
    done
done
