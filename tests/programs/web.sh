# nginx serves by local sockets: files, ranges, compressed, uploads, another server behind it, a new configuration under load, and new logs.
#: package nginx-light,curl,coreutils,grep
mkdir -p /tmp/web/files /tmp/web/data /var/lib/nginx /var/log/nginx && cd /tmp/web
echo 'nobody:x:65534:' >>/etc/group
seq 50000 >files/numbers
printf '<h1>skink</h1>\n' >files/index.html
configure() {
    cat >nginx.conf <<CONF
user root; worker_processes 2; pid /tmp/web/pid; error_log /tmp/web/errors;
events { worker_connections 64; }
http {
    default_type text/plain; access_log /tmp/web/log; sendfile on; gzip on; gzip_types text/plain; gzip_min_length 100;
    client_body_temp_path /tmp/web/body; proxy_temp_path /tmp/web/proxy; fastcgi_temp_path /tmp/web/fastcgi;
    uwsgi_temp_path /tmp/web/uwsgi; scgi_temp_path /tmp/web/scgi;
    server { listen unix:/tmp/web/front.sock; root /tmp/web/files;
        location /behind/ { proxy_pass http://unix:/tmp/web/back.sock:/; proxy_buffering on; }
        location /version { return 200 "$1\n"; }
        location /old { return 301 /numbers; } }
    server { listen unix:/tmp/web/back.sock; root /tmp/web/data; client_max_body_size 2m;
        location / { dav_methods PUT DELETE; create_full_put_path on; } }
}
CONF
}
get() { curl -s -S --unix-socket /tmp/web/front.sock "$@" 2>&1; }
configure first
nginx -t -c /tmp/web/nginx.conf 2>&1 | grep -c successful
nginx -c /tmp/web/nginx.conf && echo started
get http://web/
get http://web/numbers | sha256sum
get http://web/numbers -r 1000-1028 | tr "\n" " " && echo
get --compressed http://web/numbers | sha256sum
get -o /dev/null -w '%{http_code} %{size_download}\n' http://web/nothing
get -o /dev/null -w '%{http_code} %{redirect_url}\n' http://web/old
get -I http://web/numbers | grep -E 'HTTP|Content-Length|Accept-Ranges' | tr -d '\r'
# Uploads: by the second server, directly; fetched again through the first.
curl -s --unix-socket back.sock -T files/numbers -o /dev/null -w '%{http_code}\n' http://web/deep/copy
get http://web/behind/deep/copy | cmp - files/numbers && echo came back
curl -s --unix-socket back.sock -X DELETE -o /dev/null -w '%{http_code}\n' http://web/deep/copy
get -o /dev/null -w '%{http_code}\n' http://web/behind/deep/copy
head -c 3000000 /dev/zero | curl -s --unix-socket back.sock -T - -o /dev/null -w '%{http_code}\n' http://web/large
# A new configuration while clients fetch: none of them notices.
for client in 1 2 3 4; do
    (for n in $(seq 10); do get http://web/numbers | sha256sum; done >sums.$client) &
    clients="${clients:-} $!"
done
configure second
nginx -c /tmp/web/nginx.conf -s reload
wait $clients
sort sums.* | uniq -c
until get http://web/version | grep -q second; do sleep 0.1; done
get http://web/version
# Logs that were moved are opened anew.
mv log moved
nginx -c /tmp/web/nginx.conf -s reopen
until [ -e log ]; do sleep 0.1; done
get -o /dev/null http://web/again
until grep -q again log; do sleep 0.1; done
grep -c 'GET /numbers' moved
nginx -c /tmp/web/nginx.conf -s quit
until ! [ -e pid ]; do sleep 0.1; done
get http://web/ | sed 's/after [0-9]* ms//'
