//! The size of a plot in pixels, for what depends on room: which labels fit, how far marks spread.

use js_sys::{Array, Function, Reflect};
use leptos::{html::Div, prelude::*};
use wasm_bindgen::{JsCast, JsValue, closure::Closure};

/// The size of a plot in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// From the left to the right of the frame.
    pub width: f64,
    /// From the top to the bottom of the frame.
    pub height: f64,
}

/// The size of an element, kept up to date. Before it is measured, and where the browser cannot observe
/// sizes, it is taken as the given one.
pub(super) fn measured(node: NodeRef<Div>, before: Size) -> Signal<Size> {
    let size = RwSignal::new(before);
    Effect::new(move |_| {
        let Some(element) = node.get() else { return };
        // The browser tells the first size too, once it has laid out the page: asking for it here would have
        // the page laid out for each plot.
        let told = move |now: Size| {
            if now.width > 0.0 && now.height > 0.0 && size.get_untracked() != now {
                size.set(now);
            }
        };
        if let Ok(watch) = Watch::start(&element, told) {
            StoredValue::new_local(watch);
        }
    });
    size.into()
}

/// A browser's `ResizeObserver` on one element, ended when dropped.
struct Watch {
    observer: JsValue,
    _notify: Closure<dyn Fn(Array)>,
}

impl Watch {
    fn start(element: &JsValue, told: impl Fn(Size) + 'static) -> Result<Self, JsValue> {
        let constructor =
            Reflect::get(&js_sys::global(), &"ResizeObserver".into())?.dyn_into::<Function>()?;
        let notify = Closure::<dyn Fn(Array)>::new(move |entries: Array| {
            if let Some(size) = latest(&entries) {
                told(size);
            }
        });
        let observer = Reflect::construct(&constructor, &Array::of1(notify.as_ref()))?;
        let observe = Reflect::get(&observer, &"observe".into())?.dyn_into::<Function>()?;
        observe.call1(&observer, element)?;
        Ok(Self {
            observer,
            _notify: notify,
        })
    }
}

/// The size of the element as the last of the observer's entries has it, in whole pixels.
fn latest(entries: &Array) -> Option<Size> {
    let entry = entries.get(entries.length().checked_sub(1)?);
    let content = Reflect::get(&entry, &"contentRect".into()).ok()?;
    let side = |name: &str| Some(Reflect::get(&content, &name.into()).ok()?.as_f64()?.round());
    Some(Size {
        width: side("width")?,
        height: side("height")?,
    })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let disconnect = Reflect::get(&self.observer, &"disconnect".into());
        if let Ok(Ok(disconnect)) = disconnect.map(JsCast::dyn_into::<Function>) {
            // A browser that could observe can also stop; there is nothing to do about one that cannot.
            let _ = disconnect.call0(&self.observer);
        }
    }
}
