//! FWP clients, and downloads with repair, for any setup.

use tacit_between::fwp::{Config, repair};
use tacit_link::loss::Loss;
use tacit_link::wifi::{BothWays, LinkAcks};
use tacit_packet::units::{Bytes, FlowId, Ratio};
use tacit_sim::setup::{Application, ApplicationSetup, ClientDriver, Download, Setup};

pub fn percent(percent: f64) -> Loss {
    Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap())
}

/// Client `index`, from 0, receives its data without link-layer acknowledgments.
pub fn send_once(setup: &mut Setup, index: usize) {
    setup.bss[0].config.stations[index].link_acks = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };
}

/// Client `index`, from 0, has FWP.
pub fn speak_fwp(setup: &mut Setup, index: usize, config: Config) {
    send_once(setup, index);
    setup.bss[0].clients[index].driver = ClientDriver::Fwp(config);
}

/// A download of `size` bytes as schemes configure it, except for a larger buffer.
pub fn usual_download(size: Option<u64>) -> Download {
    Download {
        size: size.map(Bytes),
        request: Bytes(200),
        head: Bytes(300),
        repair: repair::Config { held_max: 64 << 20, holes_max: 1 << 16, ..repair::Config::default() },
    }
}

/// Makes flow `index` a `download` that is repaired over `connections` further flows at the end.
pub fn repair_flow(setup: &mut Setup, index: u32, connections: u32, download: Download) {
    let first = setup.flows.len() as u32;
    let flow = setup.flows[index as usize].clone();
    setup.flows.extend(std::iter::repeat_n(flow, connections as usize));
    setup.applications.push(ApplicationSetup {
        name: format!("download {index}"),
        flows: std::iter::once(index).chain(first..first + connections).map(FlowId).collect(),
        application: Application::Download(download),
    });
}
