//! Candidates × examples: a real table whose cells are shades, walked cell by cell.

use leptos::{ev, html::Table as TableElement, prelude::*};
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::{
    focus::{focus, leave},
    grid::next,
    marks::verdict,
    unit::{Unit, short},
};
use crate::components::{Spacer, Window};

/// What the heat table shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatData {
    /// The metric's name, as "success".
    pub metric: String,
    /// How cells are shaded.
    pub shading: Shading,
    /// The columns from left to right: those that the most prompts solve first.
    pub examples: Vec<HeatExample>,
    /// The candidates from top to bottom.
    pub rows: Vec<HeatRow>,
}

/// How a value becomes a shade.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Shading {
    /// One or more is solved and filled; less is not, a small diamond on pale.
    #[default]
    Solved,
    /// A count or a ratio in five shades.
    Steps {
        /// What it is counted in.
        unit: Unit,
        /// Where the second to the fifth shade begin, ascending.
        bounds: [f64; 4],
    },
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatExample {
    /// The example's id, which opening a cell calls back with.
    pub id: String,
    /// What it is called in sentences, as "45".
    pub name: String,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// The candidate's id.
    pub id: String,
    /// What it is called, as "seed" or the first digits of its id.
    pub name: String,
    /// Whether it keeps all thresholds.
    pub feasible: bool,
    /// The mean over its examples as text.
    pub mean: String,
    /// Its values, one for each of the examples in their order; none where there is no answer.
    pub values: Vec<Option<f64>>,
}

/// A cell: the candidate's and the example's id.
pub type HeatCell = (String, String);

/// The table and, for counts and ratios, the key of its shades. Lay it in the region of its window.
#[component]
pub fn Heat(
    /// What it shows.
    #[prop(into)]
    data: Signal<HeatData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Which of its rows are drawn.
    window: Window,
    /// The cell whose trace is open.
    #[prop(into, optional)]
    current: Signal<Option<HeatCell>>,
    /// Called with the candidate and the example of a cell to open.
    #[prop(optional, into)]
    on_open: Option<Callback<HeatCell>>,
) -> impl IntoView {
    let table = NodeRef::<TableElement>::new();
    let visited = RwSignal::new((0_usize, 0_usize));
    let extent = Memo::new(move |_| data.with(|data| (data.rows.len(), data.examples.len())));
    // The table may shrink under a visited cell, or its row leave the view: the stop stays inside.
    let stop = Memo::new(move |_| {
        let ((row, column), columns) = (visited.get(), extent.get().1);
        let drawn = window.drawn();
        (
            row.clamp(drawn.start, drawn.end.saturating_sub(1).max(drawn.start)),
            column.min(columns.saturating_sub(1)),
        )
    });
    let opened = Memo::new(move |_| {
        let (candidate, example) = current.get()?;
        data.with(|data| {
            Some((
                data.rows.iter().position(|row| row.id == candidate)?,
                data.examples.iter().position(|column| column.id == example)?,
            ))
        })
    });
    // Rows are drawn with the stop and the open cell of that moment; afterwards only the cells
    // concerned change, so that the cell with the focus stays what it is.
    Effect::new(move |_| {
        let (stop, opened) = (stop.get(), opened.get());
        if let Some(table) = table.get() {
            move_marks(&table, stop, opened);
        }
    });
    let open = move |(row, column): (usize, usize)| {
        let cell = data.with_untracked(|data| {
            Some((
                data.rows.get(row)?.id.clone(),
                data.examples.get(column)?.id.clone(),
            ))
        });
        if let (Some(open), Some(cell)) = (on_open, cell) {
            open.run(cell);
        }
    };
    let keydown = move |event: ev::KeyboardEvent| {
        let Some((element, at)) = cell_at(&event) else {
            return;
        };
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        match event.key().as_str() {
            "Enter" => {
                visited.set(at);
                open(at);
            }
            "Escape" => leave(&element),
            key => {
                let Some(next) = next(at, key, extent.get_untracked()) else {
                    return;
                };
                visited.set(next);
                window.reveal(next.0);
                // Once its row is drawn.
                request_animation_frame(move || {
                    let table = table.try_get_untracked().flatten();
                    if let Some(cell) = table.and_then(|table| cell(&table, next)) {
                        focus(&cell);
                    }
                });
            }
        }
        event.prevent_default();
    };
    let clicked = move |event: ev::MouseEvent| {
        if let Some((_, at)) = cell_at(&event) {
            visited.set(at);
            open(at);
        }
    };
    view! {
        <table
            class="heat"
            role="grid"
            style:--columns=move || extent.get().1.to_string()
            aria-label=move || label.get()
            aria-rowcount=move || extent.get().0 + 1
            node_ref=table
            on:keydown=keydown
            on:click=clicked
        >
            <colgroup>
                <col class="name" />
                <col class="mean" />
                {move || (0..extent.get().1).map(|_| view! { <col /> }).collect_view()}
            </colgroup>
            <thead>
                <tr>
                    <th scope="col">"Prompt"</th>
                    <th scope="col" class="sum">
                        "Mean"
                    </th>
                    {move || headers(extent.get().1)}
                </tr>
            </thead>
            <tbody>
                {window.table_spacer(Spacer::Above)}
                <For each=move || window.drawn() key=|row| *row let(row)>
                    <Row data=data row=row stop=stop opened=opened />
                </For>
                {window.table_spacer(Spacer::Below)}
            </tbody>
        </table>
        {move || data.with(|data| shade_key(&data.shading))}
    }
}

#[component]
fn Row(
    data: Signal<HeatData>,
    row: usize,
    stop: Memo<(usize, usize)>,
    opened: Memo<Option<(usize, usize)>>,
) -> impl IntoView {
    let name = move || data.with(|data| data.rows.get(row).map(row_name));
    let mean = move || data.with(|data| data.rows.get(row).map(|row| row.mean.clone()));
    // Drawn anew only when something in it is different.
    let described = Memo::new(move |_| {
        data.with(|data| {
            let columns = 0..data.examples.len();
            columns
                .filter_map(|column| describe(data, row, column))
                .collect::<Vec<_>>()
        })
    });
    let cells = move || {
        let (stop, opened) = (stop.get_untracked(), opened.get_untracked());
        let cell = |(column, cell): (usize, Described)| {
            let is_open = opened == Some((row, column));
            view! {
                <td
                    class=cell.class
                    class:cur=is_open
                    tabindex=if stop == (row, column) { 0 } else { -1 }
                    aria-label=cell.sentence.clone()
                    title=cell.sentence
                    aria-selected=is_open.then_some("true")
                    data-row=row
                    data-column=column
                ></td>
            }
        };
        described.get().into_iter().enumerate().map(cell).collect_view()
    };
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="sum">{mean}</td>
            {cells}
        </tr>
    }
}

/// Puts the tab stop and the frame of the open cell where they belong now.
fn move_marks(table: &Element, stop: (usize, usize), opened: Option<(usize, usize)>) {
    // None of these fails for selectors and attributes of these names.
    if let Ok(Some(last)) = table.query_selector("td[tabindex=\"0\"]") {
        let _ = last.set_attribute("tabindex", "-1");
    }
    if let Ok(Some(last)) = table.query_selector("td.cur") {
        let _ = last.class_list().remove_1("cur");
        let _ = last.remove_attribute("aria-selected");
    }
    if let Some(cell) = cell(table, stop) {
        let _ = cell.set_attribute("tabindex", "0");
    }
    if let Some(cell) = opened.and_then(|opened| cell(table, opened)) {
        let _ = cell.class_list().add_1("cur");
        let _ = cell.set_attribute("aria-selected", "true");
    }
}

fn row_name(row: &HeatRow) -> impl IntoView + use<> {
    let mark = if row.feasible { "m f" } else { "m i" };
    view! {
        <span class=mark aria-hidden="true"></span>
        <span class="id" title=row.id.clone()>
            {row.name.clone()}
        </span>
        <span class="sr">{format!(", {}", verdict(row.feasible))}</span>
    }
}

fn headers(examples: usize) -> impl IntoView {
    // Three captions over the columns; too few columns have room for the middle one only.
    let side = examples / 3;
    let left = (side > 3)
        .then(|| view! { <th scope="colgroup" class="from" colspan=side>"← solved by most prompts"</th> });
    let right = (side > 3).then(|| view! { <th scope="colgroup" class="to" colspan=side>"by few →"</th> });
    let middle = if side > 3 { examples - 2 * side } else { examples };
    view! {
        {left}
        <th scope="colgroup" class="mid" colspan=middle>
            {format!("{examples} examples")}
        </th>
        {right}
    }
}

/// The steps of the shades in words; solved and not are said in the plate's header.
fn shade_key(shading: &Shading) -> Option<impl IntoView + use<>> {
    let Shading::Steps { unit, bounds } = shading else {
        return None;
    };
    let unit = *unit;
    let step = |(shade, text): (usize, String)| {
        view! {
            <li>
                <i class=format!("h{shade}") aria-hidden="true"></i>
                {text}
            </li>
        }
    };
    let below = format!("below {}", unit.typed(bounds[0]));
    let between = bounds
        .windows(2)
        .map(|pair| format!("{} to {}", unit.typed(pair[0]), unit.typed(pair[1])));
    let above = format!("{} and above", unit.typed(bounds[3]));
    let texts = std::iter::once(below).chain(between).chain([above]);
    Some(view! { <ul class="heat-key">{texts.enumerate().map(step).collect_view()}</ul> })
}

/// How a cell looks and what it says.
#[derive(Clone, Debug, PartialEq)]
struct Described {
    class: &'static str,
    sentence: String,
}

fn describe(data: &HeatData, row: usize, example: usize) -> Option<Described> {
    let row = data.rows.get(row)?;
    let value = row.values.get(example).copied().flatten();
    let (class, words) = match (value, &data.shading) {
        (None, _) => ("kn", "no answer".to_owned()),
        (Some(value), Shading::Solved) if value >= 1.0 => ("k1", "solved".to_owned()),
        (Some(_), Shading::Solved) => ("k0", "not solved".to_owned()),
        (Some(value), Shading::Steps { unit, bounds }) => {
            let shade = bounds.iter().filter(|bound| value >= **bound).count();
            (
                ["h0", "h1", "h2", "h3", "h4"][shade],
                format!("{} {}", data.metric, unit.value(value)),
            )
        }
    };
    let name = if row.name.is_empty() {
        short(&row.id)
    } else {
        row.name.clone()
    };
    Some(Described {
        class,
        sentence: format!("{name}, example {}: {words}.", data.examples.get(example)?.name),
    })
}

fn cell_at(event: &web_sys::Event) -> Option<(Element, (usize, usize))> {
    let element = event.target()?.dyn_into::<Element>().ok()?;
    let cell = element.closest("td[data-column]").ok().flatten()?;
    let number = |name| cell.get_attribute(name)?.parse().ok();
    let at = (number("data-row")?, number("data-column")?);
    Some((cell, at))
}

fn cell(table: &Element, (row, column): (usize, usize)) -> Option<Element> {
    let selector = format!("td[data-row=\"{row}\"][data-column=\"{column}\"]");
    table.query_selector(&selector).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data(shading: Shading, value: Option<f64>) -> HeatData {
        let example = |name: &str| HeatExample {
            id: name.into(),
            name: name.into(),
        };
        HeatData {
            metric: "excess tools".to_owned(),
            shading,
            examples: vec![example("7"), example("45"), example("3")],
            rows: vec![HeatRow {
                id: "3c4434aa".to_owned(),
                name: "3c4434".to_owned(),
                feasible: true,
                mean: "75.7%".to_owned(),
                values: vec![value; 3],
            }],
        }
    }

    #[test]
    fn a_cell_says_what_it_shows() {
        let sentence = |shading, value| describe(&data(shading, value), 0, 1).map(|cell| cell.sentence);
        assert_eq!(
            sentence(Shading::Solved, Some(1.0)).as_deref(),
            Some("3c4434, example 45: solved.")
        );
        assert_eq!(
            sentence(Shading::Solved, None).as_deref(),
            Some("3c4434, example 45: no answer.")
        );
        let steps = Shading::Steps {
            unit: Unit(Quantity::Ratio),
            bounds: [0.5, 1.0, 1.5, 2.0],
        };
        let cell = describe(&data(steps, Some(1.0)), 0, 1).map(|cell| (cell.class, cell.sentence));
        assert_eq!(
            cell,
            Some(("h2", "3c4434, example 45: excess tools 1.00.".to_owned()))
        );
    }
}
