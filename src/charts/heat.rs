//! Candidates × examples: a real table whose cells are shades, walked cell by cell.

use leptos::{ev, html::Table as TableElement, prelude::*};
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::{
    grid::next,
    marks::verdict,
    roving::{focus, leave},
    unit::{Unit, short},
};

/// What the heat table shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatData {
    /// The metric's name, as "success".
    pub metric: String,
    /// How cells are shaded.
    pub shading: Shading,
    /// The examples, in any order; columns are sorted by how many prompts solve them.
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
    /// How many prompts solve it.
    pub solved_by: u32,
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

/// The table and, for counts and ratios, the key of its shades. Lay it in a region that scrolls sideways.
#[component]
pub fn Heat(
    /// What it shows.
    #[prop(into)]
    data: Signal<HeatData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// The cell whose trace is open.
    #[prop(into, optional)]
    current: Signal<Option<HeatCell>>,
    /// Called with the candidate and the example of a cell to open.
    #[prop(optional, into)]
    on_open: Option<Callback<HeatCell>>,
) -> impl IntoView {
    let table = NodeRef::<TableElement>::new();
    let order = Memo::new(move |_| data.with(|data| by_solved(&data.examples)));
    let visited = RwSignal::new((0_usize, 0_usize));
    let extent = Memo::new(move |_| data.with(|data| (data.rows.len(), data.examples.len())));
    // The table may shrink under a visited cell; the stop stays inside it.
    let stop = Memo::new(move |_| {
        let ((row, column), (rows, columns)) = (visited.get(), extent.get());
        (
            row.min(rows.saturating_sub(1)),
            column.min(columns.saturating_sub(1)),
        )
    });
    let cell_of = move |(row, column): (usize, usize)| {
        data.with_untracked(|data| {
            let example = order.with_untracked(|order| order.get(column).copied())?;
            Some((
                data.rows.get(row)?.id.clone(),
                data.examples.get(example)?.id.clone(),
            ))
        })
    };
    let open = move |at| {
        if let (Some(open), Some(cell)) = (on_open, cell_of(at)) {
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
            "Enter" => open(at),
            "Escape" => leave(&element),
            key => {
                let Some(next) = next(at, key, extent.get_untracked()) else {
                    return;
                };
                visited.set(next);
                if let Some(table) = table.get_untracked() {
                    focus_cell(&table, next);
                }
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
    let rows = move || {
        let rows = data.with(|data| data.rows.len());
        (0..rows)
            .map(|row| view! { <Row data=data order=order row=row stop=stop current=current /> })
            .collect_view()
    };
    view! {
        <table
            class="heat"
            role="grid"
            aria-label=move || label.get()
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
            <tbody>{rows}</tbody>
        </table>
        {move || data.with(|data| shade_key(&data.shading))}
    }
}

#[component]
fn Row(
    data: Signal<HeatData>,
    order: Memo<Vec<usize>>,
    row: usize,
    stop: Memo<(usize, usize)>,
    current: Signal<Option<HeatCell>>,
) -> impl IntoView {
    // What concerns this row only, so that moving the stop redraws two rows and not the table.
    let stop_here = Memo::new(move |_| Some(stop.get()).filter(|stop| stop.0 == row).map(|stop| stop.1));
    let current_here = Memo::new(move |_| {
        let (candidate, example) = current.get()?;
        data.with(|data| (data.rows.get(row)?.id == candidate).then_some(example))
    });
    let name = move || data.with(|data| data.rows.get(row).map(row_name));
    let mean = move || data.with(|data| data.rows.get(row).map(|row| row.mean.clone()));
    let cells = move || {
        let (stop, current) = (stop_here.get(), current_here.get());
        data.with(|data| {
            order.with(|order| {
                let cell = |(column, example): (usize, &usize)| {
                    let cell = describe(data, row, *example)?;
                    let is_current = current.as_ref() == Some(&data.examples[*example].id);
                    let tab_index = if stop == Some(column) { 0 } else { -1 };
                    Some(view! {
                        <td
                            class=cell.class
                            class:cur=is_current
                            tabindex=tab_index
                            aria-label=cell.sentence.clone()
                            title=cell.sentence
                            aria-selected=is_current.then_some("true")
                            data-row=row
                            data-column=column
                        ></td>
                    })
                };
                order.iter().enumerate().filter_map(cell).collect_view()
            })
        })
    };
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="sum">{mean}</td>
            {cells}
        </tr>
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
#[derive(Debug, PartialEq)]
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

/// The examples' places in the data, those that most prompts solve first.
fn by_solved(examples: &[HeatExample]) -> Vec<usize> {
    let mut order: Vec<_> = (0..examples.len()).collect();
    order.sort_by_key(|example| std::cmp::Reverse(examples[*example].solved_by));
    order
}

fn cell_at(event: &web_sys::Event) -> Option<(Element, (usize, usize))> {
    let element = event.target()?.dyn_into::<Element>().ok()?;
    let cell = element.closest("td[data-column]").ok().flatten()?;
    let number = |name| cell.get_attribute(name)?.parse().ok();
    let at = (number("data-row")?, number("data-column")?);
    Some((cell, at))
}

fn focus_cell(table: &Element, (row, column): (usize, usize)) {
    let selector = format!("td[data-row=\"{row}\"][data-column=\"{column}\"]");
    if let Ok(Some(cell)) = table.query_selector(&selector) {
        focus(&cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data(shading: Shading, value: Option<f64>) -> HeatData {
        let example = |name: &str, solved_by| HeatExample {
            id: name.into(),
            name: name.into(),
            solved_by,
        };
        HeatData {
            metric: "excess tools".to_owned(),
            shading,
            examples: vec![example("7", 1), example("45", 9), example("3", 1)],
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
    fn columns_are_sorted_by_how_many_prompts_solve_them() {
        assert_eq!(by_solved(&data(Shading::Solved, None).examples), [1, 0, 2]);
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
