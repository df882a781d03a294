#: timeout 600
# Page tables are memory of the process that needs them, and come back with its end, also those of pages that it has unmapped. But for what
# vm's own heap grows by in the first rounds, nothing is missing but what the kernel's pool and spare spaces keep: 80 frames at most, of 40,000.
free_kib() { free | awk '/^Mem:/ { print $4 }'; }
page_tables 1 10
fresh=$(free_kib)
page_tables 8 2500
page_tables 8 2500
third=$(page_tables 8 2500 unmap; free_kib)
fourth=$(page_tables 8 2500; free_kib)
[ $((fresh - third)) -lt 16384 ] && echo "tables came back" || echo "$fresh KiB were free, then $third"
[ $((third - fourth)) -le 320 ] && echo "all of them" || echo "$third KiB were free, then $fourth"
