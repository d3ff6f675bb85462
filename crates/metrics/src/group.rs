//! Metrics that are counted together, declared once: the struct and what it tells of itself.

/// Declares a struct of figures and its [`Source`](crate::Source). Each field has its help as a doc comment, the name under which it
/// is found (below the place where the group is registered; `{label=value}` is a segment that is a label), and its unit.
/// `int` behind the unit shows an `int` where `long` is the rule.
///
/// ```
/// pando_metrics::group! {
///     /// What the postman did.
///     pub struct Post {
///         /// Letters that reached somebody.
///         pub delivered: Counter = "delivered", "letters";
///         /// Letters in the bag.
///         pub carried: Gauge = "bag.letters", "letters", int;
///     }
/// }
/// Post::default().delivered.inc();
/// ```
#[macro_export]
macro_rules! group {
    ($(#[$outer:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $help:literal])+ $fvis:vis $field:ident: $ty:ident = $path:literal, $unit:literal $(, $width:ident)?;)+
    }) => {
        $(#[$outer])*
        #[derive(Default, Debug)]
        $vis struct $name {
            $($(#[doc = $help])+ $fvis $field: $crate::$ty,)+
        }
        impl $crate::Source for $name {
            fn collect(&self, to: &mut $crate::Collector<'_>) {
                $($crate::Figure::collect(&self.$field, $path, $crate::About {
                    unit: $unit,
                    help: concat!($($help),+).trim_ascii(),
                    width: $crate::group!(@width $($width)?),
                }, to);)+
            }
        }
    };
    (@width int) => { $crate::Width::Int };
    (@width) => { $crate::Width::Long };
}
