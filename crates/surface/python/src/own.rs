//! Schemes made of classes in Python, which comparisons and sweeps take beside those of the table.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tacit_congestion::Algorithm;
use tacit_scenario::brought::BroughtScheme;
use tacit_scenario::{Scenario, scheme};
use tacit_tcp::AckPolicy;

use crate::error::Failure;
use crate::external::ExternalMaker;

/// The user's policies, controllers and schedulers in Python.
pub struct Externals {
    pub acks: Option<ExternalMaker>,
    pub controller: Option<ExternalMaker>,
    pub scheduler: Option<ExternalMaker>,
}

impl Externals {
    pub fn all(&self) -> impl Iterator<Item = &ExternalMaker> {
        [&self.acks, &self.controller, &self.scheduler].into_iter().flatten()
    }

    /// Raises the exception that one of them has raised.
    pub fn check(&self) -> PyResult<()> {
        self.all().find_map(ExternalMaker::failure).map_or(Ok(()), Err)
    }

    /// The controller applies to both transports, the policy to TCP receivers, and the scheduler to access points.
    pub fn put_in(&self, scenario: &mut Scenario) -> PyResult<()> {
        if let Some(external) = &self.acks {
            scenario.tcp.ack_policy = AckPolicy::External(external.acks());
        }
        if let Some(external) = &self.controller {
            scenario.tcp.congestion.algorithm = Algorithm::External(external.control());
            scenario.tack.config.congestion.algorithm = Algorithm::External(external.control());
        }
        let Some(external) = &self.scheduler else { return Ok(()) };
        match &mut scenario.wifi {
            Some(wifi) if wifi.ofdma.acknowledgment.is_some() => {
                wifi.ofdma.config.scheduler = Some(external.scheduler());
                Ok(())
            }
            _ => Err(PyValueError::new_err(format!(
                "scheduler: {} has no PPDUs of several users; allowed: with wifi.ofdma other than \"off\"",
                scenario.name
            ))),
        }
    }
}

/// A scheme of the user's, known by its name as long as this value lives.
pub struct OwnScheme {
    brought: BroughtScheme,
    pub externals: Arc<Externals>,
}

impl OwnScheme {
    /// Brings schemes, each an object with the attributes of `tacit.OwnScheme`.
    pub fn bring(py: Python<'_>, objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<Self>> {
        objects.iter().map(|object| Self::new(py, object)).collect()
    }

    fn new(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let external = |name: &str| -> PyResult<Option<ExternalMaker>> {
            let make = object.getattr(name)?;
            if make.is_none() { Ok(None) } else { ExternalMaker::new(&make).map(Some) }
        };
        let externals = Arc::new(Externals {
            acks: external("ack_policy")?,
            controller: external("controller")?,
            scheduler: external("scheduler")?,
        });
        let raised = |error| Failure::Input(error).raised(py);
        let (name, base): (String, Option<String>) =
            (object.getattr("name")?.extract()?, object.getattr("scheme")?.extract()?);
        let base = scheme::named("--scheme", base.as_deref().unwrap_or(scheme::AS_WRITTEN.name));
        let put = externals.clone();
        let change = move |scenario: &mut Scenario| {
            // Scenarios without room for a scheduler were refused.
            let _ = put.put_in(scenario);
        };
        let brought = BroughtScheme::new(&name, base.map_err(raised)?, change).map_err(raised)?;
        Ok(Self { brought, externals })
    }

    /// Refuses a scenario that has no room for one of its classes.
    pub fn try_on(&self, py: Python<'_>, scenario: &str, assignments: &[String]) -> PyResult<()> {
        let loaded = Scenario::load(scenario, assignments);
        let loaded = loaded.map_err(|error| Failure::from(error).raised(py))?;
        self.externals.put_in(&mut self.brought.scheme().applied_to(&loaded))
    }
}
