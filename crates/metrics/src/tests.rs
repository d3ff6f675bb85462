use crate::{Collector, Family, Registry, Source, Value, prometheus};
use pando_base::Timestamp;
use pando_bson::DocBuilder;
use std::sync::Arc;
use std::time::Duration;

crate::group! {
    /// What a ferry does.
    struct Ferry {
        /// Cars that crossed.
        cars: Counter = "cars", "cars";
        /// Passengers on board
        /// at this moment.
        aboard: Gauge = "passengers.aboard", "passengers", int;
        /// Crossings by day.
        day: Latency = "crossings.{shift=day}", "crossings";
        /// Crossings by night.
        night: Latency = "crossings.{shift=night}", "crossings";
        /// Stays at the pier.
        stays: Timer = "stays", "stays";
    }
}

crate::group! {
    /// What a desk sells.
    pub(crate) struct Tickets {
        /// Tickets sold.
        pub(crate) sold: Counter = "sold", "tickets";
    }
}

struct Weather;

impl Source for Weather {
    fn collect(&self, to: &mut Collector<'_>) {
        to.gauge("fog", true, "boolean", "Whether there is fog")
            .gauge("since", Value::Date(1500), "date", "When the weather changed")
            .gauge("log", Timestamp::new(7, 2), "timestamp", "The newest entry")
            .gauge("wind speed", 2.5, "metres per second", "Wind")
            .text("from", "N\"W", "Where the wind comes from");
    }
}

fn busy() -> (Registry, Arc<Ferry>) {
    let (registry, ferry) = (Registry::default(), Arc::new(Ferry::default()));
    registry.asked("harbour.ferry", &ferry, Ferry::collect);
    let desks = Family::<Tickets>::new("desk", &["1.0", "2"]);
    desks.of("2").unwrap().sold.add(4);
    assert!(desks.of("3").is_none());
    registry.add("harbour.desks", Arc::new(desks));
    registry.add("weather", Arc::new(Weather));
    ferry.cars.add(3);
    ferry.aboard.add(5);
    ferry.aboard.sub(7);
    ferry.night.took(Duration::from_micros(40));
    ferry.stays.took(Duration::from_micros(2999));
    (registry, ferry)
}

#[test]
fn names_become_nested_documents_in_the_order_in_which_they_were_told() {
    let (registry, _ferry) = busy();
    let mut b = DocBuilder::new();
    registry.all().append_to(&mut b);
    let shown = b.finish();
    let wanted = pando_bson::doc! {
        "harbour": {
            "ferry": {
                "cars": 3i64,
                "passengers": { "aboard": -2 },
                "crossings": { "day": { "latency": 0i64, "ops": 0i64 }, "night": { "latency": 40i64, "ops": 1i64 } },
                "stays": { "num": 1i64, "totalMillis": 2i64 },
            },
            "desks": { "1.0": { "sold": 0i64 }, "2": { "sold": 4i64 } },
        },
        "weather": {
            "fog": true,
            "since": pando_bson::Bson::DateTime(1500),
            "log": pando_bson::Bson::Timestamp(Timestamp::new(7, 2)),
            "wind speed": 2.5,
            "from": "N\"W",
        },
    };
    assert_eq!(shown.as_bytes(), wanted.to_raw().as_bytes());
}

#[test]
fn a_section_is_asked_alone_and_says_nothing_when_its_owner_is_gone() {
    let (registry, ferry) = busy();
    let section = registry.section("harbour");
    assert_eq!(section.get(&["ferry", "cars"]).unwrap().value, Value::Long(3));
    assert_eq!(
        section.get(&["ferry", "passengers", "aboard"]).unwrap().help,
        "Passengers on board at this moment."
    );
    assert!(section.get(&["ferry", "crossings"]).is_none() && section.get(&["fog"]).is_none());
    drop(ferry);
    assert!(registry.section("harbour").get(&["ferry", "cars"]).is_none());
    assert!(registry.section("nowhere").get(&["x"]).is_none());
}

#[test]
fn the_text_for_prometheus_has_help_type_and_labels() {
    let (registry, _ferry) = busy();
    let wanted = r#"# HELP pandodb_harbour_desks_sold_total Tickets sold. (tickets)
# TYPE pandodb_harbour_desks_sold_total counter
pandodb_harbour_desks_sold_total{desk="1.0"} 0
pandodb_harbour_desks_sold_total{desk="2"} 4
# HELP pandodb_harbour_ferry_cars_total Cars that crossed. (cars)
# TYPE pandodb_harbour_ferry_cars_total counter
pandodb_harbour_ferry_cars_total 3
# HELP pandodb_harbour_ferry_crossings_latency_total Crossings by day. (microseconds)
# TYPE pandodb_harbour_ferry_crossings_latency_total counter
pandodb_harbour_ferry_crossings_latency_total{shift="day"} 0
pandodb_harbour_ferry_crossings_latency_total{shift="night"} 40
# HELP pandodb_harbour_ferry_crossings_ops_total Crossings by day. (crossings)
# TYPE pandodb_harbour_ferry_crossings_ops_total counter
pandodb_harbour_ferry_crossings_ops_total{shift="day"} 0
pandodb_harbour_ferry_crossings_ops_total{shift="night"} 1
# HELP pandodb_harbour_ferry_passengers_aboard Passengers on board at this moment. (passengers)
# TYPE pandodb_harbour_ferry_passengers_aboard gauge
pandodb_harbour_ferry_passengers_aboard -2
# HELP pandodb_harbour_ferry_stays_num_total Stays at the pier. (stays)
# TYPE pandodb_harbour_ferry_stays_num_total counter
pandodb_harbour_ferry_stays_num_total 1
# HELP pandodb_harbour_ferry_stays_total_millis_total Stays at the pier. (milliseconds)
# TYPE pandodb_harbour_ferry_stays_total_millis_total counter
pandodb_harbour_ferry_stays_total_millis_total 2
# HELP pandodb_weather_fog Whether there is fog (boolean)
# TYPE pandodb_weather_fog gauge
pandodb_weather_fog 1
# HELP pandodb_weather_from Where the wind comes from (text)
# TYPE pandodb_weather_from gauge
pandodb_weather_from{value="N\"W"} 1
# HELP pandodb_weather_log The newest entry (seconds since the epoch)
# TYPE pandodb_weather_log gauge
pandodb_weather_log 7
# HELP pandodb_weather_since When the weather changed (seconds since the epoch)
# TYPE pandodb_weather_since gauge
pandodb_weather_since 1.5
# HELP pandodb_weather_wind_speed Wind (metres per second)
# TYPE pandodb_weather_wind_speed gauge
pandodb_weather_wind_speed 2.5
"#;
    assert_eq!(prometheus(&registry), wanted);
}

#[test]
fn a_line_of_the_log_shows_the_sections_that_are_named() {
    let (registry, _ferry) = busy();
    let mut line = pando_env::log::Attrs::default();
    registry.append_sections(&["weather"], &mut line);
    let wanted = r#"{"weather":{"fog":true,"since":1500,"log":7,"wind speed":2.5,"from":"N\"W"}}"#;
    assert_eq!(line.finish(), wanted);
}

#[test]
fn several_who_tell_something_at_one_place_can_be_sorted() {
    let registry = Registry::default();
    let (a, b) = (Arc::new(Tickets::default()), Arc::new(Tickets::default()));
    registry.asked("zoo.b", &a, Tickets::collect);
    registry.asked("zoo.a", &b, Tickets::collect);
    registry.asked("zoo.b.c", &b, Tickets::collect);
    let mut tree = registry.all();
    let names = |tree: &crate::Tree| {
        let mut names = Vec::new();
        tree.for_each(|path, _| names.push(path.join(".")));
        names
    };
    assert_eq!(names(&tree), ["zoo.b.sold", "zoo.b.c.sold", "zoo.a.sold"]);
    tree.sort("zoo");
    assert_eq!(names(&tree), ["zoo.a.sold", "zoo.b.sold", "zoo.b.c.sold"]);
    assert_eq!(tree.problems(), Vec::<String>::new());
}

#[test]
fn a_metric_without_help_or_unit_or_told_twice_is_a_problem() {
    let registry = Registry::default();
    struct Careless;
    impl Source for Careless {
        fn collect(&self, to: &mut Collector<'_>) {
            to.counter("a", 1, "", "Things").gauge("b", 1, "things", "").gauge("a", 1, "things", "Things");
        }
    }
    registry.add("x", Arc::new(Careless));
    assert_eq!(registry.all().problems(), ["x.a has no unit", "x.b has no help", "x.a is told twice"]);
}
