//! Users of a sequence, mostly one.

use std::ops::{Deref, DerefMut};

use crate::wifi::functions::FunctionId;
use crate::wifi::mac::buffer_status::BufferStatus;
use crate::wifi::mac::exchange::Exchange;

/// A user of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// The function that exchanges frames with the initiator.
    pub client: FunctionId,
    /// The initiator's number for it.
    pub peer: usize,
    /// Index of its resource unit.
    pub unit_index: u16,
    /// Its data and the acknowledgment of it; `None` if it has no data.
    pub exchange: Option<Exchange>,
    /// Bytes in its response in addition to the Block Ack: for compressed ACKs, and for data of its own.
    pub room: u32,
    pub data_room: u32,
    /// It received what requires a response, and responds.
    pub responds: bool,
    /// Some of its data arrived.
    pub data_arrived: bool,
    /// The acknowledgment of it is lost.
    pub lost: bool,
    /// Its outcome is decided.
    pub settled: bool,
    /// More is waiting than the acknowledgment has room for.
    pub holds_more: bool,
    /// The queue that it reports with its PPDU; `None` without a report.
    pub queue: Option<BufferStatus>,
    /// MPDUs that it received before its PPDU, for which TCP ACKs are expected.
    pub awaited: u32,
    /// It took a random-access resource unit.
    pub random: bool,
    /// The access point's rate control chose the mode of its PPDU.
    pub adapts: bool,
    /// Another user took the same unit, or another frame overlapped all of its PPDU.
    pub collided: bool,
    /// Another frame overlapped the last frame at its receiver.
    pub overlapped: bool,
    /// Bytes appended to the acknowledgment.
    pub appended: Vec<u8>,
}

/// The users of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum Users {
    /// Without an allocation.
    One(User),
    Several(Vec<User>),
}

impl Deref for Users {
    type Target = [User];

    #[inline]
    fn deref(&self) -> &[User] {
        match self {
            Self::One(user) => std::slice::from_ref(user),
            Self::Several(users) => users,
        }
    }
}

impl DerefMut for Users {
    #[inline]
    fn deref_mut(&mut self) -> &mut [User] {
        match self {
            Self::One(user) => std::slice::from_mut(user),
            Self::Several(users) => users,
        }
    }
}

impl User {
    /// A user without data so far.
    pub fn new(client: FunctionId, peer: usize, unit_index: u16) -> Self {
        Self {
            client,
            peer,
            unit_index,
            exchange: None,
            room: 0,
            data_room: 0,
            responds: false,
            data_arrived: false,
            lost: false,
            settled: false,
            holds_more: false,
            queue: None,
            awaited: 0,
            random: false,
            adapts: false,
            collided: false,
            overlapped: false,
            appended: Vec::new(),
        }
    }
}
