#: timeout 600
# Page tables are memory of the process that needs them, and come back with its end, also those of pages that it has unmapped: after the first
# round nothing is missing but what vm's own heap has grown by, after the others nothing at all.
free_kib() { free | awk '/^Mem:/ { print $4 }'; }
page_tables 1 10
fresh=$(free_kib)
page_tables 8 4000
first=$(free_kib)
page_tables 8 4000 unmap
second=$(free_kib)
page_tables 8 4000
third=$(free_kib)
[ $((fresh - first)) -lt 16384 ] && echo "tables came back" || echo "$fresh KiB were free, then $first"
[ "$first $first" = "$second $third" ] && echo "all of them" || echo "$first KiB were free, then $second and $third"
