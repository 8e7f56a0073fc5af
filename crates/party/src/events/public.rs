//! The types that an event may be made of, and nothing else may.

use super::words::{KeyFile, Name, Peer, StepName, Term, Told};
use crate::config::{Address, Place};
use crate::session::control::Id;
pub use crate::session::links::Purpose;
use privet_kernels::Device;
use privet_net::Fingerprint;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

mod sealed {
    pub trait Sealed {}
}

/// May stand in an event: a count, a duration, a unit's amount, a word of this program, or the name of something that all
/// parties know. Sealed: this file lists the types; those of
/// `words.rs` are among them.
///
/// What is computed on cannot be put into an event:
///
/// ```compile_fail
/// fn field<T: privet_party::events::Public>(_: T) {}
/// field(String::from("any text"));
/// ```
/// ```compile_fail
/// fn field<T: privet_party::events::Public>(_: T) {}
/// field(0x5eed_u64);
/// ```
/// ```compile_fail
/// fn field<T: privet_party::events::Public>(_: T) {}
/// field(privet_prg::Seed::random());
/// ```
pub trait Public: sealed::Sealed + Display {
    /// As JSON has it: a number where it is one.
    type Shown<'a>: tracing::Value
    where
        Self: 'a;

    /// As JSON has it.
    fn shown(&self) -> Self::Shown<'_>;
}

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident, $unit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// So many.
            pub fn of(n: u64) -> $name {
                $name(n)
            }

            /// How many.
            pub fn get(self) -> u64 {
                self.0
            }
        }

        impl From<usize> for $name {
            fn from(n: usize) -> $name {
                $name(n as u64)
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{}", $unit), self.0)
            }
        }

        impl sealed::Sealed for $name {}

        impl Public for $name {
            type Shown<'a> = u64;
            fn shown(&self) -> u64 {
                self.0
            }
        }
    )*};
}

number! {
    /// How many of something.
    Count, "";
    /// The number of something: a run, a node of the plan, a connection, a step of a training.
    Number, "";
    /// An amount of bytes.
    Bytes, " bytes";
}

/// A duration, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Secs(f64);

impl Secs {
    /// Of a duration alone: no other number becomes one.
    pub fn of(duration: Duration) -> Secs {
        Secs(duration.as_secs_f64())
    }

    /// How many.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Display for Secs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} s", self.0)
    }
}

impl sealed::Sealed for Secs {}

impl Public for Secs {
    type Shown<'a> = f64;
    /// To the microsecond: small runs end within half a millisecond.
    fn shown(&self) -> f64 {
        (self.0 * 1e6).round() / 1e6
    }
}

/// What is shown as its text.
macro_rules! text {
    ($($name:ty),* $(,)?) => {$(
        impl sealed::Sealed for $name {}

        impl Public for $name {
            type Shown<'a> = tracing::field::DisplayValue<&'a $name>;
            fn shown(&self) -> Self::Shown<'_> {
                tracing::field::display(self)
            }
        }
    )*};
}

text!(
    Place,
    Purpose,
    Address,
    SocketAddr,
    Fingerprint,
    ShortId,
    Name,
    StepName,
    Peer,
    Term,
    Told,
    KeyFile,
    ErrorKind,
    ThreadName,
    DeviceName,
    super::Job,
    super::JobKind,
    super::PlanName,
    super::Reason,
);

impl Display for Purpose {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The beginning of the name of a session, a training, a request or a deal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortId([u8; 6]);

impl From<Id> for ShortId {
    fn from(id: Id) -> ShortId {
        let mut start = [0; 6];
        start.copy_from_slice(&id.0[..6]);
        ShortId(start)
    }
}

impl Display for ShortId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// What the system says of a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorKind(io::ErrorKind);

impl From<&io::Error> for ErrorKind {
    fn from(e: &io::Error) -> ErrorKind {
        ErrorKind(e.kind())
    }
}

impl Display for ErrorKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a device calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(String);

impl From<&dyn Device> for DeviceName {
    fn from(device: &dyn Device) -> DeviceName {
        DeviceName(device.name())
    }
}

impl Display for DeviceName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A thread of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadName(pub &'static str);

impl Display for ThreadName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Does not compile where one of the types is [`Public`]: then two implementations would fit.
macro_rules! never_public {
    ($($secret:ty),* $(,)?) => {$(
        const _: fn() = || {
            trait Ambiguous<A> {
                fn some() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Invalid;
            impl<T: ?Sized + $crate::events::Public> Ambiguous<Invalid> for T {}
            let _ = <$secret as Ambiguous<_>>::some;
        };
    )*};
}

pub(crate) use never_public;

never_public!(
    String,
    str,
    &'static str,
    char,
    bool,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i64,
    f32,
    f64,
    Vec<u8>,
    Vec<u64>,
    [u8],
    [u64],
    [u8; 16],
    [u8; 32],
    privet_prg::Seed,
    privet_ring::Tensor,
    privet_plan::FloatTensor,
    zeroize::Zeroizing<Vec<u8>>,
    Id,
    io::Error,
    privet_net::NetError,
    crate::session::job::JobError,
    Box<dyn std::error::Error>,
    fmt::Arguments<'static>,
);
