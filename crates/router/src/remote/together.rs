//! Several calls at the same time.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// What all of them come to, in their order.
pub(crate) async fn together<F: Future + Send>(all: Vec<F>) -> Vec<F::Output>
where
    F::Output: Send,
{
    let mut running: Vec<Pin<Box<F>>> = all.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        let mut waits = false;
        for (one, out) in running.iter_mut().zip(&mut done) {
            if out.is_none() {
                match one.as_mut().poll(cx) {
                    Poll::Ready(v) => *out = Some(v),
                    Poll::Pending => waits = true,
                }
            }
        }
        match waits {
            true => Poll::Pending,
            false => Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
        }
    })
    .await
}
