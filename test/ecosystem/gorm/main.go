// What applications do with GORM, each step with what has to come of it.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Team struct {
	ID      uint   `gorm:"primaryKey"`
	Name    string `gorm:"size:100;not null;uniqueIndex"`
	Players []Player `gorm:"constraint:OnDelete:CASCADE"`
}

type Player struct {
	ID     uint           `gorm:"primaryKey"`
	TeamID uint           `gorm:"not null;index;constraint:OnDelete:CASCADE"`
	Team   *Team          `gorm:"constraint:OnDelete:CASCADE"`
	Name   string         `gorm:"not null"`
	Number int            `gorm:"check:number >= 0;uniqueIndex:active_number,where:deleted_at IS NULL"`
	TeamNo uint           `gorm:"uniqueIndex:active_number"`
	Tags   string         `gorm:"type:text[];default:'{}'"`
	Data   string         `gorm:"type:jsonb;default:'{}'"`
	Gone   gorm.DeletedAt `gorm:"column:deleted_at;index"`
	Games  []Game         `gorm:"many2many:player_games"`
}

type Game struct {
	ID    uint `gorm:"primaryKey"`
	Place string
}

type LaterPlayer struct {
	Player
	Goals int    `gorm:"not null;default:0;index"`
	Nick  string `gorm:"size:50;index:nicks,expression:lower(nick)"`
}

func (LaterPlayer) TableName() string { return "players" }


func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(right bool, what string, args ...any) {
	if !right {
		log.Fatalf(what, args...)
	}
}

func main() {
	dsn := fmt.Sprintf("host=127.0.0.1 port=%s user=postgres dbname=%s sslmode=disable", os.Getenv("PGTCP"), os.Getenv("PGDATABASE"))
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Default.LogMode(logger.Silent), TranslateError: true})
	must(err)

	// what AutoMigrate executes
	var ddl []string
	must(db.Callback().Raw().After("gorm:raw").Register("ddl", func(d *gorm.DB) {
		sql := d.Statement.SQL.String()
		for _, word := range []string{"CREATE", "ALTER", "DROP"} {
			if strings.HasPrefix(sql, word) {
				ddl = append(ddl, sql)
			}
		}
	}))
	must(db.AutoMigrate(&Team{}, &Game{}, &Player{}))
	if os.Getenv("LATER") != "" {
		must(db.AutoMigrate(&LaterPlayer{}))
	}
	if os.Getenv("SECOND") != "" {
		check(len(ddl) == 0, "the second start executed %q", ddl)
	} else {
		check(len(ddl) > 0, "nothing was made")
	}
	must(db.Migrator().AutoMigrate())
	check(db.Migrator().HasIndex(&Player{}, "active_number"), "no partial key")
	check(db.Migrator().HasConstraint(&Player{}, "fk_teams_players"), "no foreign key")
	types, err := db.Migrator().ColumnTypes(&Player{})
	must(err)
	check(len(types) >= 8, "%d columns", len(types))

	must(db.Exec("DELETE FROM player_games").Error)
	must(db.Unscoped().Where("true").Delete(&Player{}).Error)
	must(db.Unscoped().Where("true").Delete(&Team{}).Error)
	var n int64
	must(db.Unscoped().Model(&Player{}).Count(&n).Error)
	check(n == 0, "%d players are left", n)

	a, b := Team{Name: "A"}, Team{Name: "B"}
	must(db.Create(&a).Error)
	must(db.Create(&b).Error)
	check(errors.Is(db.Create(&Team{Name: "A"}).Error, gorm.ErrDuplicatedKey), "a second A")
	var players []Player
	for i := 0; i < 50; i++ {
		players = append(players, Player{TeamID: a.ID, TeamNo: a.ID, Name: fmt.Sprint("p", i), Number: i, Tags: "{x,y}",
			Data: fmt.Sprintf(`{"n": %d}`, i), Games: []Game{{Place: fmt.Sprint("g", i%3)}}})
	}
	must(db.CreateInBatches(&players, 20).Error)
	check(errors.Is(db.Create(&Player{TeamID: 0, TeamNo: 1, Name: "nobody's", Number: 99}).Error, gorm.ErrForeignKeyViolated), "a player of no team")
	check(db.Create(&Player{TeamID: a.ID, TeamNo: a.ID, Name: "minus", Number: -1}).Error != nil, "a negative number")
	check(errors.Is(db.Create(&Player{TeamID: a.ID, TeamNo: a.ID, Name: "again", Number: 7}).Error, gorm.ErrDuplicatedKey), "7 twice")
	must(db.Where("number = ?", 7).Delete(&Player{}).Error)
	must(db.Create(&Player{TeamID: a.ID, TeamNo: a.ID, Name: "new", Number: 7, Tags: "{}", Data: "{}"}).Error)

	var team Team
	must(db.Preload("Players", func(d *gorm.DB) *gorm.DB { return d.Order("number DESC").Limit(10) }).First(&team, "name = ?", "A").Error)
	check(len(team.Players) == 10 && team.Players[0].Number == 49, "players of A: %v", len(team.Players))
	var found []Player
	must(db.Joins("Team").Where("data->>'n' = ? AND 'x' = ANY (tags)", "5").Find(&found).Error)
	check(len(found) == 1 && found[0].Team.Name == "A", "found %d", len(found))

	// upserts, by key and by name
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoNothing: true}).Create(&Team{Name: "B"}).Error)
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}).Create(&Team{ID: b.ID, Name: "BB"}).Error)
	team = Team{}
	must(db.First(&team, b.ID).Error)
	check(team.Name == "BB", "B is called %s", team.Name)

	must(db.Transaction(func(tx *gorm.DB) error {
		var p Player
		must(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&p, "number = ?", 9).Error)
		must(tx.Model(&p).Update("number", gorm.Expr("number + 100")).Error)
		inner := tx.Transaction(func(tx *gorm.DB) error {
			must(tx.Model(&Player{}).Where("true").Update("name", "lost").Error)
			return errors.New("back")
		})
		check(inner != nil, "no error")
		return nil
	}))
	must(db.Model(&Player{}).Where("number = 109").Count(&n).Error)
	check(n == 1, "109 is there %d times", n)
	must(db.Model(&Player{}).Where("name = 'lost'").Count(&n).Error)
	check(n == 0, "%d are lost", n)
	rows, err := db.Model(&Player{}).Order("id").Rows()
	must(err)
	n = 0
	for rows.Next() {
		var p Player
		must(db.ScanRows(rows, &p))
		n++
	}
	must(rows.Close())
	check(n == 50, "%d rows", n)
	must(db.Exec("DELETE FROM player_games").Error)
	must(db.Unscoped().Delete(&Team{}, a.ID).Error)
	must(db.Unscoped().Model(&Player{}).Count(&n).Error)
	check(n == 0, "%d players outlive their team", n)
}
