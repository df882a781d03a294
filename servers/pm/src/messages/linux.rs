//! From the number of a Linux call to its handler. What is not listed is ENOSYS.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::containers::Kind;
use crate::state::index::ThreadIndex;
use crate::state::machine::Name;
use crate::state::trace::Leaving;
use crate::system::System;
use abi::linux::nr;
use abi::{Errno, Part};

impl<S: System> Pm<S> {
    /// Makes the call `number` with arguments `a` for `t`.
    pub fn linux_call(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Step {
        let p = self.programs.table.process_of(t);
        if self.programs.table[p].credentials.parts.of(Part::Processes) != 0 {
            let meant = self.programs.table.arguments_meant(p, number, a);
            return self.call_meant(t, number, &meant);
        }
        self.call_meant(t, number, a)
    }

    /// Makes a call whose process numbers are the system's.
    fn call_meant(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Step {
        let p = self.programs.table.process_of(t);
        match number {
            nr::FORK | nr::VFORK | nr::CLONE | nr::CLONE3 => self.fork_call(t, number, a),
            nr::EXECVE => self.programs.execve(t, a[0], a[1], a[2]),
            nr::EXECVEAT => self.programs.execveat(t, a),
            nr::EXIT if self.stops_at_exit(t, Leaving::Thread(a[0]), (a[0] & 0xff) << 8) => Step::Later,
            nr::EXIT => self.exit_thread(t, a[0]),
            nr::EXIT_GROUP if self.stops_at_exit(t, Leaving::Process(a[0]), (a[0] & 0xff) << 8) => Step::Later,
            nr::EXIT_GROUP => {
                self.exit_group(p, a[0]);
                Step::Later
            }
            nr::WAIT4 => self.wait_call(t, a, Programs::wait4),
            nr::WAITID => self.wait_call(t, a, Programs::waitid),
            nr::PTRACE => self.ptrace(t, a),
            nr::PROCESS_VM_READV => self.programs.process_vm(t, a, false).into(),
            nr::PROCESS_VM_WRITEV => self.programs.process_vm(t, a, true).into(),
            nr::RESTART_SYSCALL => self.restart_syscall(t),
            nr::UNSHARE => self.unshare(t, a[0]).into(),
            nr::SKINK_CONTAINER => self.container_call(t, a),
            nr::SETNS => self.programs.setns(t, a[0] as i32, a[1] & 0xffff_ffff).into(),
            nr::PIDFD_OPEN => self.programs.pidfd_open(t, a[0] as i32, a[1]).into(),
            nr::PIDFD_GETFD => self.programs.pidfd_getfd(t, a).into(),
            nr::KCMP => self.programs.kcmp(t, a).into(),
            nr::PIDFD_SEND_SIGNAL => self.pidfd_send_signal(t, a).into(),

            nr::RT_SIGACTION => self.rt_sigaction(t, a).into(),
            nr::RT_SIGPROCMASK => self.programs.rt_sigprocmask(t, a, None).into(),
            nr::RT_SIGPENDING => self.programs.rt_sigpending(t, a).into(),
            nr::RT_SIGRETURN => self.rt_sigreturn(t),
            nr::SIGALTSTACK => self.programs.sigaltstack(t, a[0], a[1]).into(),
            nr::RT_SIGSUSPEND => self.rt_sigsuspend(t, a[0], a[1]),
            nr::RT_SIGTIMEDWAIT => self.rt_sigtimedwait(t, a),
            nr::PAUSE => self.pause(t),
            nr::KILL => self.kill(t, a[0] as i32, a[1]).into(),
            nr::TKILL => self.tkill(t, None, a[0] as i32, a[1]).into(),
            nr::TGKILL => self.tkill(t, Some(a[0] as i32), a[1] as i32, a[2]).into(),
            nr::RT_SIGQUEUEINFO => self.rt_sigqueueinfo(t, a[0] as i32, a[1], a[2]).into(),
            nr::RT_TGSIGQUEUEINFO => self.rt_tgsigqueueinfo(t, a).into(),

            nr::SETPGID => self.programs.setpgid(p, a[0] as i32, a[1] as i32).into(),
            nr::GETPGID => self.programs.getpgid(p, a[0] as i32).into(),
            nr::SETSID => self.programs.setsid(t, p).into(),
            nr::GETSID => self.programs.getsid(p, a[0] as i32).into(),

            nr::NANOSLEEP => self.nanosleep(t, a[0], a[1]),
            nr::CLOCK_NANOSLEEP => self.clock_nanosleep(t, a),
            nr::ALARM => self.alarm(p, a[0]).into(),
            nr::SETITIMER => self.setitimer(t, a).into(),
            nr::GETITIMER => self.getitimer(t, a).into(),
            nr::TIMER_CREATE => self.timer_create(t, a).into(),
            nr::TIMER_SETTIME => self.timer_settime(t, a).into(),
            nr::TIMER_GETTIME => self.timer_gettime(t, a[0], a[1]).into(),
            nr::TIMER_GETOVERRUN => self.timer_getoverrun(t, a[0]).into(),
            nr::TIMER_DELETE => self.timer_delete(t, a[0]).into(),

            nr::SEMGET => self.semget(t, a).into(),
            nr::SEMOP => self.semop(t, a, 0),
            nr::SEMTIMEDOP => self.semop(t, a, a[3]),
            nr::SEMCTL => self.semctl(t, a).into(),
            nr::MSGGET => self.msgget(t, a).into(),
            nr::MSGSND => self.msgsnd(t, a),
            nr::MSGRCV => self.msgrcv(t, a),
            nr::MSGCTL => self.msgctl(t, a).into(),
            nr::SHMGET => self.shmget(t, a).into(),
            nr::SHMAT => self.shmat(t, a).into(),
            nr::SHMCTL => self.shmctl(t, a).into(),

            _ => {
                if let Some(value) = self.programs.table.look_up(t, number) {
                    return Step::Done(Ok(value));
                }
                match self.id_call(t, number, a).or_else(|| self.time_call(t, number, a)) {
                    Some(result) => result.into(),
                    None => self.information_call(t, number, a),
                }
            }
        }
    }

    fn id_call(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Option<Result<u64, Errno>> {
        let p = self.programs.table.process_of(t);
        let kind = match number {
            nr::SETUID | nr::SETREUID | nr::SETRESUID => Some(Kind::Users),
            nr::SETGID | nr::SETREGID | nr::SETRESGID => Some(Kind::Groups),
            _ => None,
        };
        let own = |id: u64| match kind {
            Some(kind) => self.programs.table.meant(p, kind, id as u32),
            None => Ok(id as u32),
        };
        let (first, second, third) = match (own(a[0]), number) {
            // The others have fewer arguments.
            (Err(error), _) => return Some(Err(error)),
            (Ok(first), nr::SETUID | nr::SETGID) => (first, 0, 0),
            (Ok(first), _) => {
                let third = if matches!(number, nr::SETRESUID | nr::SETRESGID) { own(a[2]) } else { Ok(0) };
                match (own(a[1]), third) {
                    (Ok(second), Ok(third)) => (first, second, third),
                    (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
                }
            }
        };
        let credentials = &self.programs.table[p].credentials;
        Some(match number {
            nr::SETUID => self.programs.change_ids(p, |c, may| c.user.set(first, may.user)),
            nr::SETGID => self.programs.change_ids(p, |c, may| c.group.set(first, may.group)),
            nr::SETREUID => self.programs.change_ids(p, |c, may| c.user.set_two(first, second, may.user)),
            nr::SETREGID => self.programs.change_ids(p, |c, may| c.group.set_two(first, second, may.group)),
            nr::SETRESUID => self.programs.change_ids(p, |c, may| c.user.set_all(first, second, third, may.user)),
            nr::SETRESGID => self.programs.change_ids(p, |c, may| c.group.set_all(first, second, third, may.group)),
            nr::GETRESUID => self.programs.get_three_ids(t, Kind::Users, credentials.user, a),
            nr::GETRESGID => self.programs.get_three_ids(t, Kind::Groups, credentials.group, a),
            nr::SETFSUID => Ok(self.programs.set_file_user(p, first)),
            nr::SETFSGID => Ok(self.programs.set_file_group(p, first)),
            nr::GETGROUPS => self.programs.getgroups(t, a[0], a[1]),
            nr::SETGROUPS => self.programs.setgroups(t, a[0], a[1]),
            nr::CAPGET => self.programs.capget(t, a[0], a[1]),
            nr::CAPSET => self.programs.capset(t, a[0], a[1]),
            _ => return None,
        })
    }

    fn time_call(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Option<Result<u64, Errno>> {
        Some(match number {
            nr::CLOCK_GETTIME => self.programs.clock_gettime(t, a[0] as i32, a[1]),
            nr::CLOCK_GETRES => self.programs.clock_getres(t, a[0] as i32, a[1]),
            nr::CLOCK_SETTIME => self.programs.clock_settime(t, a[0] as i32, a[1]),
            nr::GETTIMEOFDAY => self.programs.gettimeofday(t, a[0], a[1]),
            nr::ADJTIMEX => self.programs.clock_adjtime(t, 0, a[0]),
            nr::CLOCK_ADJTIME => self.programs.clock_adjtime(t, a[0] as i32, a[1]),
            nr::SETTIMEOFDAY => self.programs.settimeofday(t, a[0]),
            nr::TIME => self.programs.time(t, a[0]),
            nr::TIMES => self.programs.times(t, a[0]),
            nr::GETRUSAGE => self.programs.getrusage(t, a[0] as i32, a[1]),
            _ => return None,
        })
    }

    fn information_call(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Step {
        let p = self.programs.table.process_of(t);
        match number {
            nr::SET_TID_ADDRESS => {
                self.programs.table[t].clear_tid = a[0];
                Ok(self.programs.table[t].tid() as u64)
            }
            nr::SET_ROBUST_LIST => self.programs.set_robust_list(t, a[0], a[1]),
            nr::GET_ROBUST_LIST => self.programs.get_robust_list(t, a[0] as i32, a[1], a[2]),
            nr::ARCH_PRCTL => return self.programs.arch_prctl(t, a[0], a[1]),
            nr::PRCTL => return self.prctl(t, a),
            nr::SECCOMP => return self.seccomp(t, a),
            nr::PRLIMIT64 => self.prlimit64(t, a),
            nr::GETRLIMIT => self.prlimit64(t, &[0, a[0], 0, a[1], 0, 0, 0]),
            nr::SETRLIMIT => self.setrlimit(t, a[0], a[1]),
            nr::GETRANDOM => self.getrandom(t, a[0], a[1], a[2]),
            nr::GETPRIORITY => self.programs.getpriority(p, a[0], a[1] as u32),
            nr::SETPRIORITY => self.programs.setpriority(p, a[0], a[1] as u32, a[2] as i32),
            nr::IOPRIO_GET => self.programs.ioprio_get(p, a[0] & 0xffff_ffff, a[1] as u32),
            nr::IOPRIO_SET => self.programs.ioprio_set(p, a[0] & 0xffff_ffff, a[1] as u32, a[2]),
            nr::GETCPU => self.programs.getcpu(t, a[0], a[1]),
            nr::MEMBARRIER => self.programs.membarrier(t, a[0], a[1]),
            nr::SCHED_GETAFFINITY => self.programs.sched_getaffinity(t, a),
            nr::SCHED_SETAFFINITY => self.programs.sched_setaffinity(t, a),
            nr::SCHED_GETSCHEDULER => self.programs.sched_getscheduler(t, a[0] as i32),
            nr::SCHED_SETSCHEDULER => self.sched_setscheduler(t, a[0] as i32, a[1], a[2]),
            nr::SCHED_GETPARAM => self.programs.sched_getparam(t, a[0] as i32, a[1]),
            nr::SCHED_SETPARAM => self.sched_setparam(t, a[0] as i32, a[1]),
            nr::SCHED_GETATTR => self.programs.sched_getattr(t, a[0] as i32, a[1], a[2], a[3]),
            nr::SCHED_SETATTR => self.sched_setattr(t, a[0] as i32, a[1], a[2]),
            nr::SCHED_RR_GET_INTERVAL => self.programs.sched_rr_get_interval(t, a[0] as i32, a[1]),
            nr::SCHED_GET_PRIORITY_MAX => self.programs.sched_priority_range(a[0], true),
            nr::SCHED_GET_PRIORITY_MIN => self.programs.sched_priority_range(a[0], false),
            nr::PERSONALITY => Ok(self.programs.personality(t, a[0])),
            nr::UNAME => self.uname(t, a[0]),
            nr::SETHOSTNAME => self.set_machine_name(t, a[0], a[1], Name::Host),
            nr::SETDOMAINNAME => self.set_machine_name(t, a[0], a[1], Name::Domain),
            nr::SYSINFO => self.programs.sysinfo(t, a[0]),
            nr::SYSLOG => self.programs.syslog(t, a[0], a[1], a[2]),
            nr::SKINK_CORE_DUMP => self.programs.core_dump(t, a),
            nr::REBOOT => return self.reboot(t, a[0] as u32, a[1] as u32, a[2] as u32),
            _ => Err(Errno::ENOSYS),
        }
        .into()
    }
}
