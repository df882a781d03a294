//! Messages of 64 bytes there and back by iceoryx2, beside those of `../ipc.c` (`./skink bench m3ipc`): two services of the
//! publish-subscribe kind for each pair, one in each direction. With `polling` a side looks again until the message has come, and
//! yields where both may share a processor; with `events` it sleeps until an event of the other side.
//!
//! usage: `iceoryx2_rows ROUNDS` prints a line for each placement and way: placement, mechanism, thousand messages a second of all
//! pairs together. `iceoryx2_rows SIDE WAY SHARES ROUNDS NAME` is one of the processes: it says `ready`, waits for a line, and the
//! client says how many seconds it took. Invariant: no process outlives the first one, whichever of them fails.
#![forbid(unsafe_code)]

use iceoryx2::config::Config;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rounds before the clock is started, as in `ipc.c`.
const WARM_UP: u64 = 100;
/// Rounds in which the kernel is asked are fewer by this factor, as in `ipc.c`.
const SLOWER: u64 = 10;
/// How long a side lives at most: the other one may have failed.
const LIFETIME: Duration = Duration::from_secs(60);

/// Where the client and the server of each pair run; `None`: anywhere. The names are those of `ipc.c`.
const PLACEMENTS: [(&str, &[Option<[u32; 2]>]); 4] = [
    ("1 processor", &[Some([0, 0])]),
    ("2 processors", &[Some([1, 0])]),
    ("2 pairs, each on its own", &[Some([0, 0]), Some([1, 1])]),
    ("4 pairs, unpinned", &[None; 4]),
];

/// How a side waits for a message.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Polling,
    Events,
}

impl Way {
    const ALL: [Way; 2] = [Way::Polling, Way::Events];

    fn word(self) -> &'static str {
        match self {
            Way::Polling => "polling",
            Way::Events => "events",
        }
    }

    fn of(word: &str) -> Result<Way> {
        let found = Way::ALL.into_iter().find(|way| way.word() == word);
        found.ok_or_else(|| format!("polling or events, not {word}").into())
    }

    fn rounds(self, all: u64) -> u64 {
        match self {
            Way::Polling => all,
            Way::Events => all / SLOWER,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Client,
    Server,
}

impl Role {
    const BOTH: [Role; 2] = [Role::Client, Role::Server];

    fn word(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }

    fn of(word: &str) -> Result<Role> {
        let found = Role::BOTH.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| format!("client or server, not {word}").into())
    }
}

#[derive(Debug, Clone, Copy, ZeroCopySend)]
#[repr(C)]
struct Message {
    words: [u64; 8],
}

/// One side of a pair.
struct Side {
    publisher: Publisher<ipc::Service, Message, ()>,
    subscriber: Subscriber<ipc::Service, Message, ()>,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
    way: Way,
    /// Whether the other side may wait for this side's processor.
    shares_processor: bool,
}

impl Side {
    fn open(node: &Node<ipc::Service>, name: &str, role: Role, way: Way, shares_processor: bool) -> Result<Side> {
        let (there, back) = (format!("{name}/there"), format!("{name}/back"));
        let (out, into) = if role == Role::Client { (there, back) } else { (back, there) };
        let messages = |name: &str| -> Result<_> {
            Ok(node.service_builder(&name.try_into()?).publish_subscribe::<Message>().open_or_create()?)
        };
        let events = |name: String| -> Result<_> {
            Ok(node.service_builder(&name.as_str().try_into()?).event().open_or_create()?)
        };
        Ok(Side {
            publisher: messages(&out)?.publisher_builder().create()?,
            subscriber: messages(&into)?.subscriber_builder().create()?,
            notifier: events(format!("{out}/event"))?.notifier_builder().create()?,
            listener: events(format!("{into}/event"))?.listener_builder().create()?,
            way,
            shares_processor,
        })
    }

    fn send(&self, message: Message) -> Result<()> {
        self.publisher.loan_uninit()?.write_payload(message).send()?;
        if self.way == Way::Events {
            self.notifier.notify()?;
        }
        Ok(())
    }

    fn receive(&self) -> Result<Message> {
        loop {
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(*sample);
            }
            match self.way {
                // An event of a message that was taken before it ends this wait at once, and the next one is waited for.
                Way::Events => drop(self.listener.blocking_wait(|_| ())?),
                Way::Polling if self.shares_processor => std::thread::yield_now(),
                Way::Polling => std::hint::spin_loop(),
            }
        }
    }

    /// One message there and one back.
    fn round_trip(&self, role: Role, round: u64) -> Result<()> {
        let message = Message { words: [round; 8] };
        if role == Role::Client {
            self.send(message)?;
        }
        let received = self.receive()?;
        if received.words != message.words {
            return Err(format!("round {round} has the words of another one: {received:?}").into());
        }
        if role == Role::Server {
            self.send(received)?;
        }
        Ok(())
    }
}

fn wait_for_line() -> Result<()> {
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Is one side of a pair, from the command line's words on.
fn run_side(role: Role, way: Way, shares_processor: bool, rounds: u64, name: &str) -> Result<()> {
    std::thread::spawn(|| {
        std::thread::sleep(LIFETIME);
        std::process::exit(1);
    });
    set_log_level(LogLevel::Error);
    // Not what a file of the user's says.
    let node = NodeBuilder::new().config(&Config::default()).create::<ipc::Service>()?;
    let side = Side::open(&node, name, role, way, shares_processor)?;
    println!("ready");
    wait_for_line()?;
    let mut start = Instant::now();
    for round in 0..WARM_UP + rounds {
        if round == WARM_UP {
            start = Instant::now();
        }
        side.round_trip(role, round)?;
    }
    if role == Role::Client {
        println!("{}", start.elapsed().as_secs_f64());
    }
    // What was sent last lies in this side's memory until it is taken.
    wait_for_line()
}

/// A side that runs. Dropped, it is killed.
struct Running {
    role: Role,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(role: Role, words: &[&str], processor: Option<u32>) -> Result<Running> {
        let own = std::env::current_exe()?;
        let mut command = match processor {
            Some(number) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &number.to_string()]).arg(own);
                command
            }
            None => Command::new(own),
        };
        command.arg(role.word()).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("a side without output")?);
        Ok(Running { role, child, output })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(format!("a {} has failed", self.role.word()).into()),
            _ => Ok(line.trim().to_string()),
        }
    }

    fn go_on(&mut self) -> Result<()> {
        Ok(self.child.stdin.as_mut().ok_or("a side without input")?.write_all(b"\n")?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs all pairs of a placement. Returns thousand messages a second.
fn run(pairs: &[Option<[u32; 2]>], way: Way, rounds: u64) -> Result<f64> {
    let mut sides = Vec::new();
    for (number, processors) in pairs.iter().enumerate() {
        let name = format!("skink/{}/{}/{number}", std::process::id(), way.word());
        let shares = processors.is_none_or(|[client, server]| client == server).to_string();
        let words = [way.word(), &shares, &rounds.to_string(), &name];
        for (at, role) in Role::BOTH.into_iter().enumerate() {
            sides.push(Running::start(role, &words, processors.map(|both| both[at]))?);
        }
    }
    for side in &mut sides {
        side.line()?;
    }
    for side in &mut sides {
        side.go_on()?;
    }
    let mut slowest: f64 = 0.0;
    for side in sides.iter_mut().filter(|side| side.role == Role::Client) {
        slowest = slowest.max(side.line()?.parse()?);
    }
    for side in &mut sides {
        side.go_on()?;
        side.child.wait()?;
    }
    Ok(2.0 * rounds as f64 * pairs.len() as f64 / slowest / 1000.0)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [rounds] => {
            let rounds: u64 = rounds.parse()?;
            for (placement, pairs) in PLACEMENTS {
                for way in Way::ALL {
                    let speed = run(pairs, way, way.rounds(rounds))?;
                    println!("{placement}\ticeoryx2, {}\t{speed:.3}", way.word());
                }
            }
            Ok(())
        }
        [role, way, shares, rounds, name] => {
            run_side(Role::of(role)?, Way::of(way)?, shares == "true", rounds.parse()?, name)
        }
        _ => Err("usage: iceoryx2_rows ROUNDS".into()),
    }
}
