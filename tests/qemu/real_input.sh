#: timeout 900
# Real tools on real data print what they print on Linux: see ../real_input/commands.sh.
cd /data
sh /data.sh /out
