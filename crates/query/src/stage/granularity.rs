//! Preferred numbers: the series that `$bucketAuto` may round its boundaries to.

use pando_base::{Error, Result};

#[derive(Clone, Debug)]
pub(super) enum Granularity {
    /// One decade, ascending.
    Series(Vec<f64>),
    PowersOf2,
}

/// `count` numbers to a decade, spaced evenly by ratio, with three digits.
fn ratio_series(count: u32) -> Vec<f64> {
    let one = |i| (10f64.powf(f64::from(i) / f64::from(count)) * 100.0).round();
    // The standard has 920 where the formula gives 919.
    (0..count).map(one).map(|n| if count == 192 && n == 919.0 { 920.0 } else { n }).collect()
}

/// R40 as MongoDB has it: without 335.
#[rustfmt::skip]
const R40: [f64; 39] = [
    100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0, 224.0, 236.0, 250.0,
    265.0, 280.0, 300.0, 315.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0, 500.0, 530.0, 560.0, 600.0, 630.0, 670.0, 710.0,
    750.0, 800.0, 850.0, 900.0, 950.0,
];
/// R80 as MongoDB has it: only the numbers between those of R40.
#[rustfmt::skip]
const R80: [f64; 40] = [
    103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0, 230.0, 243.0, 258.0,
    272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0, 515.0, 545.0, 575.0, 615.0, 650.0, 690.0,
    730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
];
#[rustfmt::skip]
const R20: [f64; 20] = [
    100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0, 500.0, 560.0, 630.0,
    710.0, 800.0, 900.0,
];

impl Granularity {
    pub(super) fn parse(name: &str) -> Result<Granularity> {
        Ok(Granularity::Series(match name {
            "POWERSOF2" => return Ok(Granularity::PowersOf2),
            "R5" => vec![10.0, 16.0, 25.0, 40.0, 63.0],
            "R10" => R20.iter().copied().step_by(2).collect(),
            "R20" => R20.to_vec(),
            "R40" => R40.to_vec(),
            "R80" => R80.to_vec(),
            "1-2-5" => vec![10.0, 20.0, 50.0],
            "E6" => vec![10.0, 15.0, 22.0, 33.0, 47.0, 68.0],
            "E12" => vec![10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0],
            "E24" => vec![
                10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0,
                43.0, 47.0, 51.0, 56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
            ],
            "E48" => ratio_series(48),
            "E96" => ratio_series(96),
            "E192" => ratio_series(192),
            _ => return Err(Error::location(40257, format!("Unknown rounding granularity '{name}'"))),
        }))
    }

    /// The smallest number of the series above `n`; zero stays.
    pub(super) fn up(&self, n: f64) -> f64 {
        let series = match self {
            _ if n == 0.0 || n.is_infinite() => return n,
            Granularity::PowersOf2 => return 2f64.powf(n.log2().floor() + 1.0),
            Granularity::Series(s) => s,
        };
        let (first, last) = ends(series);
        let mut scale = 1.0;
        while n >= last * scale {
            scale *= 10.0;
        }
        while n < first * scale {
            let above = first * scale;
            scale /= 10.0;
            if n >= last * scale {
                return above;
            }
        }
        series.iter().map(|s| s * scale).find(|s| *s > n).unwrap_or(first * scale * 10.0)
    }

    /// The largest number of the series below `n`; zero stays.
    pub(super) fn down(&self, n: f64) -> f64 {
        let series = match self {
            _ if n == 0.0 || n.is_infinite() => return n,
            Granularity::PowersOf2 => return 2f64.powf(n.log2().ceil() - 1.0),
            Granularity::Series(s) => s,
        };
        let (first, last) = ends(series);
        let mut scale = 1.0;
        while n <= first * scale {
            scale /= 10.0;
        }
        while n > last * scale {
            let below = last * scale;
            scale *= 10.0;
            if n <= first * scale {
                return below;
            }
        }
        series.iter().rev().map(|s| s * scale).find(|s| *s < n).unwrap_or(last * scale / 10.0)
    }
}

fn ends(series: &[f64]) -> (f64, f64) {
    (series.first().copied().unwrap_or(1.0), series.last().copied().unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_moves_to_the_next_number_even_from_a_member() {
        let r5 = Granularity::parse("R5").unwrap();
        assert_eq!((r5.up(16.0), r5.down(16.0), r5.up(0.0)), (25.0, 10.0, 0.0));
        let two = Granularity::parse("POWERSOF2").unwrap();
        assert_eq!((two.up(8.0), two.down(8.0), two.up(9.0)), (16.0, 4.0, 16.0));
    }

    #[test]
    fn series_have_as_many_numbers_as_their_names_say() {
        for (name, n) in [("R10", 10), ("R20", 20), ("R40", 39), ("E48", 48), ("E192", 192)] {
            let Granularity::Series(s) = Granularity::parse(name).unwrap() else { panic!() };
            assert_eq!((s.len(), s.is_sorted()), (n, true), "{name}");
        }
    }
}
