module shop

go 1.19

require (
	gorm.io/driver/postgres v1.5.7
	gorm.io/gorm v1.25.10
)
