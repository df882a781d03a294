# links2 draws a page with text, a table and a picture on the frame buffer.
#: package links2,coreutils
#: screen
#: timeout 600
#: memory 1024
picture make /tmp/picture.png 400 300 1
cat >/tmp/page.html <<'END'
<html><head><title>A page</title></head><body bgcolor="#ffffe0">
<h1>A page on the frame buffer</h1>
<p>Text in <b>bold</b>, <i>italic</i> and <tt>typewriter</tt>, <a href="other.html">a link</a>.</p>
<table border=1><tr><td bgcolor="#ff8080">one<td bgcolor="#80ff80">two<tr><td>three<td><img src="picture.png"></table>
<hr><ul><li>first<li>second</ul>
</body></html>
END
chvt 2
HOME=/tmp TERM=linux setsid -c links2 -driver fb /tmp/page.html </dev/tty2 >/dev/tty2 2>/tmp/errors &
picture hold 1000
picture take >/out/picture
md5sum </out/picture
cat /tmp/errors
