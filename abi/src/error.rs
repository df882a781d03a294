//! Error numbers: Linux's (errno(3), asm-generic/errno.h), and Skink's own from 1001 on.
//! In a result word an error is its negative number.

/// An error number, positive.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        #[allow(missing_docs)]
        impl Errno { $($(#[$doc])* pub const $name: Errno = Errno($value);)* }
        /// Every error, with its name.
        pub const ERRNOS: &[(i32, &str)] = &[$(($value, stringify!($name)),)*];
    };
}

errnos! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, ENOTBLK = 15, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENODEV = 19,
    ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, ETXTBSY = 26, EFBIG = 27, ENOSPC = 28,
    ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34, EDEADLK = 35, ENAMETOOLONG = 36, ENOLCK = 37,
    ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENOMSG = 42, EIDRM = 43, ENODATA = 61, ETIME = 62, EPROTO = 71, EBADMSG = 74, EOVERFLOW = 75,
    EILSEQ = 84, EUSERS = 87, ENOTSOCK = 88, EDESTADDRREQ = 89, EMSGSIZE = 90, EPROTOTYPE = 91, ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93, ESOCKTNOSUPPORT = 94, EOPNOTSUPP = 95, EAFNOSUPPORT = 97, EADDRINUSE = 98, EADDRNOTAVAIL = 99,
    ENETUNREACH = 101, ECONNABORTED = 103, ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ETOOMANYREFS = 109,
    ETIMEDOUT = 110, ECONNREFUSED = 111, EALREADY = 114, EINPROGRESS = 115, ESTALE = 116, EUCLEAN = 117, EDQUOT = 122,
    ECANCELED = 125,
    /// Never seen by programs: pm restarts the call or makes it fail with `EINTR`, as SA_RESTART says.
    ERESTARTSYS = 512,
    /// The destination is not in the sender's bitmap, or the kernel call not in the caller's mask.
    ECALLDENIED = 1001,
    /// No such kernel call.
    EBADCALL = 1002,
    /// The endpoint names no process: it has ended, is of an old generation, or never existed.
    EDEADSRCDST = 1003,
    /// The send would deadlock: it would close a cycle of processes waiting for each other.
    ELOCKED = 1004,
    /// `SENDNB`: the destination is not waiting for this sender. The sender is notified when it is.
    ENOTREADY = 1005,
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match ERRNOS.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl core::fmt::Debug for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}
