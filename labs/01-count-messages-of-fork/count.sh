#!/bin/sh
# Prints the messages, kernel calls and switches of the first fork in the trace on standard input. (Yours to write.)
cat >/dev/null
echo "messages 0"
