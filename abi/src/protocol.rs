//! The macro that defines a protocol: types, decoder, C header and reference are all generated from one table.
//!
//! ```text
//! protocol! {
//!     /// What it is for and who speaks it.
//!     pub "block" = 7;
//!     /// Reads sectors. Called by file systems.
//!     Read = 1 { minor: u64, grant: GrantId } -> { bytes: u64 }
//! }
//! ```
//! makes a struct `Read` with `LABEL`, `message()`, `from_message()`; a struct `ReadReply` for words 1 and on of the
//! reply (word 0 is the result, `Message::result`); an enum `Request` of all messages with `Request::decode`; and the
//! table `PROTOCOL`. At most six fields each: word 6 is the tag.

/// One field of a message: its name and its type, as text.
#[derive(Debug)]
pub struct Field {
    /// Name, with its unit.
    pub name: &'static str,
    /// Rust type.
    pub kind: &'static str,
}

/// One message of a protocol.
#[derive(Debug)]
pub struct MessageInfo {
    /// Name of the message.
    pub name: &'static str,
    /// Label of the request.
    pub label: u32,
    /// Documentation, one element for each line.
    pub doc: &'static [&'static str],
    /// Words 0 and on of the request.
    pub request: &'static [Field],
    /// Words 1 and on of the reply.
    pub reply: &'static [Field],
}

/// One protocol.
#[derive(Debug)]
pub struct ProtocolInfo {
    /// Name, as in the file of `abi`.
    pub name: &'static str,
    /// Documentation, one element for each line.
    pub doc: &'static [&'static str],
    /// Its messages.
    pub messages: &'static [MessageInfo],
}

macro_rules! protocol {
    (
        $(#[doc = $pdoc:literal])*
        pub $pname:literal = $pnumber:literal;
        $(
            $(#[doc = $doc:literal])*
            $name:ident = $number:literal { $($field:ident : $kind:ty),* $(,)? }
                $(-> { $($rfield:ident : $rkind:ty),* $(,)? })?
        )*
    ) => {
        /// The protocol as a table.
        pub const PROTOCOL: $crate::ProtocolInfo = $crate::ProtocolInfo {
            name: $pname,
            doc: &[$($pdoc),*],
            messages: &[$($crate::MessageInfo {
                name: stringify!($name),
                label: ($pnumber << 16) | $number,
                doc: &[$($doc),*],
                request: &[$($crate::Field { name: stringify!($field), kind: stringify!($kind) }),*],
                reply: &[$($($crate::Field { name: stringify!($rfield), kind: stringify!($rkind) }),*)?],
            }),*],
        };

        $(
            $(#[doc = $doc])*
            #[allow(missing_docs)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name { $(pub $field: $kind),* }

            #[allow(unused_mut, unused_variables, unused_assignments, missing_docs)]
            impl $name {
                pub const LABEL: u32 = ($pnumber << 16) | $number;

                /// Encodes the request.
                pub fn message(self) -> $crate::Message {
                    let mut message = $crate::Message::new(Self::LABEL);
                    let mut at = 0;
                    $(message.words[at] = $crate::Word::to_word(self.$field); at += 1;)*
                    message
                }

                /// Decodes the request; the caller has checked the label.
                pub fn from_message(message: &$crate::Message) -> Self {
                    let mut at = 0;
                    $(let $field = <$kind as $crate::Word>::from_word(message.words[at]); at += 1;)*
                    Self { $($field),* }
                }
            }

            protocol!(@reply $name $($($rfield : $rkind),*)?);
        )*

        /// Any request of this protocol.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request { $($name($name)),* }

        impl Request {
            /// Decodes the request in a message; `None` if it belongs to another protocol.
            pub fn decode(message: &$crate::Message) -> Option<Request> {
                match message.label {
                    $($name::LABEL => Some(Request::$name($name::from_message(message))),)*
                    _ => None,
                }
            }
        }
    };
    (@reply $name:ident) => {};
    (@reply $name:ident $($rfield:ident : $rkind:ty),+) => {
        impl $name {
            /// Returns a successful reply to `request` with these results and `status` in word 0.
            #[allow(clippy::too_many_arguments, reason = "one for each result that the protocol declares")]
            pub fn reply(request: &$crate::Message, status: u64, $($rfield: $rkind),*) -> $crate::Message {
                let mut reply = request.reply(Ok(status));
                let mut at = 1;
                $(reply.words[at] = $crate::Word::to_word($rfield); at += 1;)*
                let _ = at;
                reply
            }

            /// Decodes the results of a reply, or its error.
            #[allow(unused_parens)]
            pub fn results(reply: &$crate::Message) -> Result<($($rkind),*), $crate::Errno> {
                reply.result()?;
                let mut at = 1;
                $(let $rfield = <$rkind as $crate::Word>::from_word(reply.words[at]); at += 1;)*
                let _ = at;
                Ok(($($rfield),*))
            }
        }
    };
}
