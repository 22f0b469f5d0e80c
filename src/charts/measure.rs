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
        let read = {
            let element = element.clone();
            move || {
                let now = Size {
                    width: f64::from(element.client_width()),
                    height: f64::from(element.client_height()),
                };
                if now.width > 0.0 && now.height > 0.0 && size.get_untracked() != now {
                    size.set(now);
                }
            }
        };
        read();
        if let Ok(watch) = Watch::start(&element, read) {
            StoredValue::new_local(watch);
        }
    });
    size.into()
}

/// A browser's `ResizeObserver` on one element, ended when dropped.
struct Watch {
    observer: JsValue,
    _notify: Closure<dyn Fn()>,
}

impl Watch {
    fn start(element: &JsValue, notify: impl Fn() + 'static) -> Result<Self, JsValue> {
        let constructor =
            Reflect::get(&js_sys::global(), &"ResizeObserver".into())?.dyn_into::<Function>()?;
        let notify = Closure::<dyn Fn()>::new(notify);
        let observer = Reflect::construct(&constructor, &Array::of1(notify.as_ref()))?;
        let observe = Reflect::get(&observer, &"observe".into())?.dyn_into::<Function>()?;
        observe.call1(&observer, element)?;
        Ok(Self {
            observer,
            _notify: notify,
        })
    }
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
