# Perl: regular expressions, sorting, files, locks, pipes to and from children, signals, threads, packed data and digests.
#: package perl
cat >/tmp/p.pl <<'P'
use strict; use warnings; use threads; use threads::shared; use Fcntl qw(:flock SEEK_SET); use POSIX qw(:sys_wait_h floor);
use Digest::SHA qw(sha256_hex); use Digest::MD5 qw(md5_hex); use File::Temp qw(tempdir); use File::Find; use File::Copy; use Socket;
use Time::HiRes qw(alarm usleep); use List::Util qw(sum reduce first shuffle); use Storable qw(store retrieve); use Data::Dumper; use IO::Select; use IO::Handle;
$| = 1; $Data::Dumper::Sortkeys = 1; $Data::Dumper::Indent = 1;
my $dir = tempdir(CLEANUP => 1); chdir $dir or die;
my %count; $count{lc $1}++ while "The cat and the dog and the bird" =~ /(\w+)/g;
print join(' ', map { "$_=$count{$_}" } sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count), "\n";
(my $date = '2024-05-06') =~ s/(\d+)-(\d+)-(\d+)/$3.$2.$1/; print "$date\n"; print join('|', 'a1b22c' =~ /(?<l>[a-z])(\d+)/g), " $+{l}\n";
open my $fh, '>', 'data' or die; print $fh "$_\n" for 1 .. 20000; close $fh; print -s 'data', "\n";
open $fh, '+<', 'data' or die; flock $fh, LOCK_EX; seek $fh, 100, SEEK_SET; read $fh, my $piece, 10; print $piece =~ s/\n/,/gr, "\n"; close $fh;
my $pid = open my $kid, '-|'; die unless defined $pid; if (!$pid) { print "from the child\n"; exit 7 } print while <$kid>; close $kid; print 'status ', $? >> 8, "\n";
open my $sorter, '|-', 'sort -n | tail -n 2' or die; print $sorter "$_\n" for shuffle 1 .. 5000; close $sorter;
print `echo \$((6*7)); exit 3`, $? >> 8, "\n";
eval { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 0.1; select undef, undef, undef, 10; }; print $@;
local $SIG{CHLD} = sub { 1 while waitpid(-1, WNOHANG) > 0 }; for (1 .. 5) { my $p = fork; exit 0 unless $p } usleep 300_000; print "children are gone\n";
socketpair my $near, my $far, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die; if (!fork) { close $near; while (<$far>) { syswrite $far, uc } exit } close $far; syswrite $near, "over a socket\n"; print scalar <$near>; close $near;
my $total :shared = 0; my @t = map { my $n = $_; threads->create(sub { for (1 .. 500) { lock $total; $total += $n } $n * 2 }) } 1 .. 4; print join(',', map { $_->join } @t), " $total\n";
print sha256_hex('x' x 100000), "\n", md5_hex('y'), "\n"; print unpack('H*', pack 'NnCa3xw', 1, 2, 3, 'abc', 300), "\n";
store { list => [1 .. 5], h => { a => undef } }, 'stored'; print Dumper retrieve 'stored';
mkdir "d$_" for 1 .. 3; copy 'data', 'd2/copy'; my @found; find sub { push @found, $File::Find::name }, '.'; print join(' ', sort @found), "\n";
my @m = (stat 'd2/copy')[2, 7]; printf "%o %d\n", $m[0] & 0777, $m[1]; rename 'd2/copy', 'd3/moved' and unlink 'd3/moved' and print "renamed\n"; symlink 'data', 'l'; print readlink 'l', "\n";
my $s = IO::Select->new; pipe my $r, my $w; $s->add($r); print scalar(my @none = $s->can_read(0)), "\n"; syswrite $w, 'z'; print scalar(my @one = $s->can_read(1)), "\n";
local $SIG{USR1} = sub { print "usr1\n" }; kill USR1 => $$; my @s = sort { $a <=> $b } map { $_ * 7919 % 10007 } 1 .. 10006; print "$s[0] $s[-1] ", sum(@s), "\n"; printf "%.10f %e %s\n", atan2(1, 1) * 4, 12345.678, 0.1 + 0.2;
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(17), "\n"; print sprintf('%vd', '1.22.333'), ' ', join(',', reverse 'a' .. 'e'), "\n"; exec 'echo', 'the end' or die;
P
perl /tmp/p.pl
