//! Routes that share one weida connection: what they ask of it together. `[weida S17-35]`

use std::collections::{BTreeMap, BTreeSet};

use weida_bridge::Pattern;

use super::super::report::Report;
use super::super::valid::WeidaEnd;
use super::route::BuiltRoute;

/// Filters that a publisher takes on one connection unless it says otherwise; the next one costs all of them.
const MAX_FILTERS_PER_CONNECTION: usize = 256;

/// Routes that subscribe at one address share its connection, so their different filters are counted together.
pub(super) fn filters(routes: &[BuiltRoute], report: &mut Report) {
    let mut asked: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for route in routes {
        let WeidaEnd::Dial { address, filter } = &route.config.weida else {
            continue;
        };
        if route.config.route.pattern != Pattern::Subscribe {
            continue;
        }
        let filters = asked.entry(address.to_string()).or_default();
        if filters.insert(filter.as_str()) && filters.len() == MAX_FILTERS_PER_CONNECTION + 1 {
            let message = format!(
                "the {}th different filter at `{address}`: its publisher would close the connection that they share",
                filters.len()
            );
            let help = "unite filters, or publish at a second path".to_owned();
            report.error("E043", &route.at, &route.path, message, help);
        }
    }
}
