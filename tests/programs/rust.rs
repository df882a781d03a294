//! Uses Rust's standard library as programs do; prints the same on every Linux.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

fn threads() {
    let (send, receive) = mpsc::channel();
    let workers: Vec<_> = (0..4u64)
        .map(|n| {
            let send = send.clone();
            thread::spawn(move || (0..250).for_each(|i| send.send(n * 1000 + i).expect("somebody receives")))
        })
        .collect();
    drop(send);
    println!("{}", receive.iter().sum::<u64>());
    workers.into_iter().for_each(|worker| worker.join().expect("does not panic"));

    let count = AtomicU64::new(0);
    let barrier = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                count.fetch_add(1, Ordering::SeqCst);
                barrier.wait();
                assert_eq!(count.load(Ordering::SeqCst), 3);
            });
        }
    });
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let waiter = thread::spawn(move || {
        let mut ready = other.0.lock().expect("not poisoned");
        while !*ready {
            ready = other.1.wait(ready).expect("not poisoned");
        }
        "woken"
    });
    *pair.0.lock().expect("not poisoned") = true;
    pair.1.notify_all();
    println!("{}", waiter.join().expect("does not panic"));
    static ONCE: OnceLock<u32> = OnceLock::new();
    let lock = RwLock::new(5);
    println!("{} {}", ONCE.get_or_init(|| 42), *lock.read().expect("not poisoned") + 1);
    println!("{:?}", thread::spawn(|| panic!("on purpose")).join().is_err());
    println!("{:?}", receive_nothing());
}

fn receive_nothing() -> Result<u8, mpsc::RecvTimeoutError> {
    let (_send, receive) = mpsc::channel();
    receive.recv_timeout(Duration::from_millis(20))
}

fn files() -> io::Result<()> {
    let _ = fs::remove_dir_all("/tmp/rust");
    fs::create_dir_all("/tmp/rust/a/b")?;
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open("/tmp/rust/a/file")?;
    for n in 0..5000 {
        writeln!(file, "{n}")?;
    }
    file.seek(SeekFrom::Start(10))?;
    let mut piece = [0; 6];
    file.read_exact(&mut piece)?;
    println!("{:?} {}", String::from_utf8_lossy(&piece), file.metadata()?.len());
    file.set_len(7)?;
    fs::set_permissions("/tmp/rust/a/file", fs::Permissions::from_mode(0o640))?;
    fs::hard_link("/tmp/rust/a/file", "/tmp/rust/link")?;
    symlink("a/file", "/tmp/rust/soft")?;
    let facts = fs::metadata("/tmp/rust/soft")?;
    println!("{:o} {} {}", facts.mode() & 0o777, facts.nlink(), facts.size());
    println!("{:?}", File::open("/tmp/rust/none").map_err(|error| error.kind()).err());
    println!("{:?}", fs::remove_dir("/tmp/rust/a").map_err(|error| error.raw_os_error()).err());
    fs::rename("/tmp/rust/a", "/tmp/rust/z")?;
    let mut names: Vec<_> = fs::read_dir("/tmp/rust")?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    names.sort();
    println!("{names:?} {:?}", fs::canonicalize("/tmp/rust/z/../z/b")?);
    println!("{}", fs::copy("/tmp/rust/z/file", "/tmp/rust/copy")?);
    let modified = fs::metadata("/tmp/rust/copy")?.modified()?;
    println!("{}", SystemTime::now() >= modified);
    Ok(())
}

fn children() -> io::Result<()> {
    let mut sort = Command::new("sort").arg("-n").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    sort.stdin.take().expect("is piped").write_all(b"10\n9\n8\n")?;
    println!("{:?}", String::from_utf8_lossy(&sort.wait_with_output()?.stdout));
    let status = Command::new("sh").args(["-c", "exit $CODE"]).env("CODE", "7").status()?;
    println!("{status} {:?}", Command::new("/nonexistent").spawn().map_err(|error| error.kind()).err());
    let mut sleeper = Command::new("sleep").arg("100").spawn()?;
    println!("{:?}", sleeper.try_wait()?);
    sleeper.kill()?;
    println!("{}", sleeper.wait()?);
    let lines = Command::new("seq").arg("1000").stdout(Stdio::piped()).spawn()?.stdout.expect("is piped");
    println!("{}", BufReader::new(lines).lines().map_while(Result::ok).filter(|line| line.contains('7')).count());
    Ok(())
}

fn sockets() -> io::Result<()> {
    let listener = UnixListener::bind("/tmp/rust/socket")?;
    let server = thread::spawn(move || -> io::Result<()> {
        for stream in listener.incoming().take(3) {
            let stream = stream?;
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line)?;
            (&stream).write_all(line.to_uppercase().as_bytes())?;
        }
        Ok(())
    });
    for n in 0..3 {
        let mut stream = UnixStream::connect("/tmp/rust/socket")?;
        writeln!(stream, "client {n}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        print!("{answer}");
    }
    server.join().expect("does not panic")?;
    let (near, far) = UnixDatagram::pair()?;
    near.send(b"datagram")?;
    let mut buffer = [0; 20];
    println!("{}", far.recv(&mut buffer)?);
    far.set_read_timeout(Some(Duration::from_millis(20)))?;
    println!("{:?}", far.recv(&mut buffer).map_err(|error| error.kind() == ErrorKind::WouldBlock));
    println!("{:?}", UnixStream::connect("/tmp/rust/none").map_err(|error| error.kind()).err());
    Ok(())
}

fn main() -> io::Result<()> {
    let start = Instant::now();
    threads();
    files()?;
    children()?;
    sockets()?;
    let mut words: HashMap<&str, u32> = HashMap::new();
    "a b a c b a".split(' ').for_each(|word| *words.entry(word).or_default() += 1);
    println!("{:?}", words.into_iter().collect::<BTreeMap<_, _>>());
    thread::sleep(Duration::from_millis(5));
    println!("{}", start.elapsed() >= Duration::from_millis(5));
    std::process::exit(9)
}
