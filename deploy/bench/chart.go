package main

import (
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is one picture: lines over a logarithmic x.
type chart struct {
	Title string `json:"title"`
	X     string `json:"x"`
	Y     string `json:"y"`
	Lines []line `json:"lines"`
}

type line struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

func (c *chart) add(name string, x, y float64) {
	for i := range c.Lines {
		if c.Lines[i].Name == name {
			c.Lines[i].Points = append(c.Lines[i].Points, [2]float64{x, y})
			return
		}
	}
	c.Lines = append(c.Lines, line{Name: name, Points: [][2]float64{{x, y}}})
}

// first and last are the ends of the first line.
func (c *chart) first() float64 { return c.Lines[0].Points[0][1] }
func (c *chart) last() float64  { return c.Lines[0].Points[len(c.Lines[0].Points)-1][1] }

// drawCharts writes charts into one SVG file, two in a row.
func drawCharts(charts []chart, file string) error {
	const columns = 2
	rows := (len(charts) + columns - 1) / columns
	width, height := 9*vg.Inch, vg.Length(rows)*2.6*vg.Inch
	canvas := vgsvg.New(width, height)
	colours := []color.Color{color.RGBA{R: 0x1f, G: 0x6f, B: 0xeb, A: 255}, color.RGBA{R: 0xd2, G: 0x5b, B: 0x11, A: 255}}
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Points(18), PadY: vg.Points(16), PadTop: vg.Points(8), PadBottom: vg.Points(8), PadLeft: vg.Points(8), PadRight: vg.Points(14)}
	all := draw.New(canvas)
	all.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	for i, c := range charts {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Min = 0
		p.Add(plotter.NewGrid())
		for j, l := range c.Lines {
			points := make(plotter.XYs, len(l.Points))
			for k, at := range l.Points {
				points[k].X, points[k].Y = at[0], at[1]
			}
			lines, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			lines.Color, dots.Color = colours[j%len(colours)], colours[j%len(colours)]
			lines.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
			p.Add(lines, dots)
			if len(c.Lines) > 1 {
				p.Legend.Add(l.Name, lines, dots)
				p.Legend.Top, p.Legend.Left = true, true
			}
			for _, at := range l.Points {
				p.Y.Max = max(p.Y.Max, at[1]*1.15)
			}
		}
		p.Draw(tiles.At(all, i%columns, i/columns))
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
