//! A value of every type of field, for tests.

use super::job::{Job, JobKind, PlanName};
use super::public::*;
use super::reason::{Reason, reason};
use super::words::*;
use crate::config::{Address, Place};
use crate::session::control::Id;
use crate::session::testing::program;
use std::time::Duration;

pub trait Sample {
    fn sample() -> Self;
}

macro_rules! samples {
    ($($ty:ty: $value:expr;)*) => {$(
        impl Sample for $ty {
            fn sample() -> $ty {
                $value
            }
        }
    )*};
}

samples! {
    Place: Place::Client("alice".into());
    Purpose: Purpose::Client;
    Address: "127.0.0.1:7701".parse().unwrap();
    Count: Count::of(41);
    Number: Number::of(42);
    Bytes: Bytes::of(43);
    Secs: Secs::of(Duration::from_millis(1250));
    Name: Name::of("relu1");
    KeyFile: KeyFile::of("0123456789abcdef0123456789abcdef/5.keys");
    ShortId: Id([7; 16]).into();
    ThreadName: ThreadName("privet-test");
    JobKind: JobKind::Prepare;
    DeviceName: (&*privet_kernels::cpu(1)).into();
    Reason: reason!("test.reason", "{n} is too few", n = Count::of(1));
    Job: Job {
        id: Id([8; 16]).into(),
        kind: JobKind::Run,
        clients: vec![Place::Client("alice".into()), Place::Client("bob".into())],
        plan: PlanName::find(&program(), "infer"),
    };
}
