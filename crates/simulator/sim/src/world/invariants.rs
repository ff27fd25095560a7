//! Invariants of a world: the counts of packets, airtime and goodput are consistent, and time advances.

use tacit_link::wifi::StationId;

use super::{Channel, Wire, World, stations};
use crate::Carried;
use crate::flow::{End, Feeder};

/// Number of events at one moment that means a run without end: a component that is always due. No start of flows comes near it.
pub(super) const EVENTS_AT_ONE_MOMENT: u64 = 1 << 20;

impl<P: Carried> World<'_, P> {
    /// Ends a run in which time stands still.
    #[cold]
    pub(super) fn check_progress(&mut self, component: u32) {
        if self.progressed_to.replace(self.now) == Some(self.now) {
            let component = self.components[component as usize];
            let what = format!("{EVENTS_AT_ONE_MOMENT} events at one moment, the last of {component:?}");
            self.broken.get_or_insert(what);
        }
    }

    /// Checks that packets add up on each pipe and channel, and the invariants of flows and drivers.
    pub(super) fn check(&self) -> Result<(), String> {
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check([End::Source, End::Sink].map(|end| self.throttled.contains(&(index, end))))?;
        }
        self.check_throttled()?;
        for (index, Wire { pipe, .. }) in self.wires.iter().enumerate() {
            let counters = pipe.counters();
            let gone = counters.dropped + counters.filtered_acks + counters.lost;
            let accounted = counters.delivered + gone + pipe.in_transit() as u64;
            let given = counters.offered + counters.duplicated;
            if accounted != given {
                return Err(format!("pipe {index} was given {given} packets and accounts for {accounted}"));
            }
        }
        for (index, channel) in self.channels.iter().enumerate() {
            channel.bss.check().map_err(|what| format!("channel {index}: {what}"))?;
        }
        self.packets.holders.check(|see| {
            self.wires.iter().for_each(|wire| wire.pipe.each_held(see));
            for channel in &self.channels {
                channel.bss.each_held(see);
                channel.drivers.each_held(see);
            }
        })?;
        for (index, channel) in self.channels.iter().enumerate() {
            channel.drivers.check(self.now).map_err(|what| format!("channel {index}: {what}"))?;
        }
        Ok(())
    }

    /// Checks that the airtime of each channel adds up to the measured window, and that no station is served for longer
    /// than that.
    pub(super) fn check_airtime(&self) -> Result<(), String> {
        for (index, Channel { bss: channel, .. }) in self.channels.iter().enumerate() {
            for link in channel.links() {
                let until = channel.airtime_until(link, self.now).min(self.end);
                let measured = until.saturating_since(self.setup.measure_from);
                let booked = channel.airtime_on(link, self.now).total();
                if booked != measured {
                    return Err(format!("channel {index}: airtime adds up to {booked} of {measured}"));
                }
            }
            let present = self.now.saturating_since(self.setup.measure_from);
            for station in stations(&self.setup.bss[index]) {
                for (from, to) in [(StationId::AP, station), (station, StationId::AP)] {
                    let turns = channel.turns(from, to, self.now);
                    let most = present * (channel.categories().len() * channel.links().count()) as u64;
                    if turns.waited + turns.served > most {
                        return Err(format!(
                            "channel {index}: {from:?} serves {to:?} for longer than time: {turns:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that no flow has more goodput than bytes that arrived at its sink in the measured window, and that all
    /// flows together have no more than arrived since the start: a program may hand on bytes later that waited for
    /// repair.
    pub(super) fn check_goodput(&self) -> Result<(), String> {
        let (mut got_by_all, mut carried_by_all) = (0, 0);
        for flow in &self.flows {
            let (got, got_since_start, _) = self.user_got(flow);
            got_by_all += got_since_start;
            carried_by_all += flow.carried;
            let carried = flow.carried_since();
            if flow.feeder == Feeder::Own && got > carried {
                return Err(format!("{} has {got} bytes of the {carried} that came to it", flow.id));
            }
        }
        if got_by_all > carried_by_all {
            return Err(format!("flows have {got_by_all} bytes of the {carried_by_all} that came to them"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Setup;
    use tacit_packet::Packet;
    use tacit_packet::units::{Duration, Instant};

    /// Four faults of the medium did this, each in one of a hundred worlds, and looked like slow runs.
    #[test]
    fn a_component_that_is_always_due_ends_the_run() {
        let setup = Setup {
            hosts: vec!["host".into()],
            wired: Vec::new(),
            bss: Vec::new(),
            flows: Vec::new(),
            applications: Vec::new(),
            duration: Duration::from_secs(1),
            measure_from: Instant::ZERO,
            seed: 1,
            wire: false,
            sample_interval: None,
            adopters: None,
        };
        let mut world = World::<Packet>::new(&setup, None).expect("a host alone is a setup");
        let at = Instant::ZERO + Duration::from_millis(1);
        let measure = 0;
        let broken = (1..=2 * EVENTS_AT_ONE_MOMENT).find(|_| {
            world.begin_event(at, measure);
            world.broken.is_some()
        });
        assert_eq!(broken, Some(2 * EVENTS_AT_ONE_MOMENT));
        assert!(world.broken.is_some_and(|what| what.ends_with("the last of Measure")));
    }
}
