//! The compressor's state for tunnels and extension headers.

use super::history::MAX_REPEAT;
use crate::ip_id::behavior;
use crate::layers::chains::{replicates, sequence, sequence_form};
use crate::layers::{Kind, Layers, MAX_LAYERS, traffic_class};
use crate::lsb::Window;

/// Changes between the layers of consecutive packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Changes that only an IR can carry.
    pub(super) statics: bool,
    /// Changes that only an IR-DYN or IR can carry.
    pub(super) dynamics: bool,
    /// DSCP or ECN bits of an outer IP header, which the irregular chain carries while ECN is in use (RFC 6846 section
    /// 6.1.3).
    pub(super) traffic_class: bool,
    /// TTL or hop limit of an outer IP header, which the irregular chain of co_common carries on demand.
    ttl: bool,
}

/// The layers of a flow's last packet, and their values that the peer may hold.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    last: Layers,
    /// Number of packets that still have to carry the TTLs of outer headers.
    pub(super) ttl_left: u8,
    /// The sequence numbers of the last packets, per layer.
    sequences: [Window<{ MAX_REPEAT as usize }>; MAX_LAYERS],
}

impl Tunnel {
    /// Starts with the layers of the first packet of a flow.
    pub(super) fn new(layers: &mut Layers) -> Self {
        for index in 0..layers.count() {
            let (layer, bytes) = layers.get_mut(index);
            if layer.kind == Kind::V4 && bytes[4..6] == [0; 2] {
                layer.behavior = behavior::ZERO as u8;
            }
        }
        Self { last: layers.clone(), ttl_left: 0, sequences: [Window::new(); MAX_LAYERS] }
    }

    /// Compares the layers of a packet with those of the previous packet, and decides how to encode the differences.
    /// Each change of a TTL is sent in `repeat` packets.
    pub(super) fn learn(&mut self, layers: &mut Layers, repeat: u8) -> Change {
        let mut change = Change { statics: !self.last.is_same_flow(layers), ..Change::default() };
        if change.statics {
            *self = Self::new(layers);
            return change;
        }
        for (index, before) in self.last.all().iter().enumerate() {
            let old = self.last.bytes_of(before);
            let (layer, new) = layers.get_mut(index);
            layer.behavior = before.behavior;
            match layer.kind {
                Kind::V4 => {
                    change.traffic_class |= old[1] != new[1];
                    change.ttl |= old[8] != new[8];
                    change.dynamics |= old[6] != new[6];
                    if u32::from(layer.behavior) == behavior::ZERO && new[4..6] != [0; 2] {
                        layer.behavior = behavior::RANDOM as u8;
                        change.dynamics = true;
                    }
                }
                Kind::V6 => {
                    change.traffic_class |= traffic_class(old) != traffic_class(new);
                    change.ttl |= old[7] != new[7];
                }
                Kind::HopByHop | Kind::Destination => change.dynamics |= old != new,
                Kind::Ah => change.dynamics |= old[2..4] != new[2..4],
                Kind::Gre | Kind::Routing | Kind::Mine => {}
            }
            if let Some(number) = sequence(layer.kind, new) {
                let form = sequence_form(self.sequences[index].values(), number);
                layer.short_sequence = form == Some(true);
                change.dynamics |= form.is_none();
            }
        }
        if change.ttl {
            self.ttl_left = repeat;
        }
        self.last.clone_from(layers);
        change
    }

    /// Records a packet that was sent.
    pub(super) fn sent(&mut self, repeat: u8) {
        self.ttl_left = self.ttl_left.saturating_sub(1);
        for (layer, window) in self.last.all().iter().zip(&mut self.sequences) {
            if let Some(number) = sequence(layer.kind, self.last.bytes_of(layer)) {
                window.push(number, usize::from(repeat));
            }
        }
    }

    /// True if an IR-CR can encode every difference between these layers and those that the peer holds for this tunnel.
    pub(super) fn replicates(&self, layers: &Layers) -> bool {
        self.ttl_left == 0 && replicates(&self.last, layers)
    }
}
